(* SPDX-License-Identifier: Apache-2.0

   The slots form of docs/bound.md, proven: by `bounded` at the end no bottom handler of p ends
   later than a latency that `check` accepts, in any run that conforms (Runs.v). The proof is the
   page's: the last quiet time t, and what fills every instant since. It uses no axioms. *)
From Coq Require Import ZArith List Lia Bool.
From Latenz Require Import Runs.
Import ListNotations.
Open Scope Z_scope.

(** * The check of a certificate *)

Definition demand (cost : source -> Z) (count : source -> Z -> Z) (s : system) (window : Z) : Z :=
  fold_right (fun each sum => cost each * count each window + sum) 0 (sources s).

Definition arrivals (s : source) (window : Z) : Z := eta (arrival s) window.

Definition grants (s : source) (window : Z) : Z :=
  match monitor s with None => 0 | Some m => Z.min (eta (arrival s) window) (eta m window) end.

Definition own_work : system -> Z -> Z := demand own_bottom arrivals.

(* Ticks of a cycle in which p is not supplied; the most of them in any window of a length. *)
Definition gap (s : system) : Z := cycle s - (stop s - start s).
Definition most_blocked (s : system) (window : Z) : Z :=
  window / cycle s * gap s + Z.min (window mod cycle s) (gap s).

Definition needed (s : system) (bottoms window : Z) : Z :=
  bottoms + demand top arrivals s window + demand job grants s window + most_blocked s window.

(* Certificates: the longest busy window; for IRQs that arrive before `fst` of a step, counted from
   the busy window's start, and not before that of the step before: when they have ended. *)
Record certificate := { busy : Z; steps : list (Z * Z) }.

Fixpoint covers (s : system) (latency until from : Z) (list : list (Z * Z)) : bool :=
  match list with
  | [] => until <=? from
  | (next, finish) :: rest =>
      (needed s (own_work s next) finish <=? finish) && (next <=? finish) &&
      (finish - from <=? latency) && covers s latency until next rest
  end.

Definition sane (s : system) : bool :=
  (0 <=? start s) && (start s <? stop s) && (stop s <=? cycle s) &&
  forallb (fun each => (0 <=? top each) && (0 <=? bottom each) && (0 <=? job each)) (sources s).

Definition check (s : system) (c : certificate) (latency : Z) : bool :=
  sane s && (1 <=? busy c) && (needed s (own_work s (busy c)) (busy c) <=? busy c) &&
  covers s latency (busy c) 0 (steps c).

(** * The supply *)

Section Supply.
Variable s : system.
Hypothesis slot : 0 <= start s < stop s /\ stop s <= cycle s.

Lemma most_blocked_at (q r : Z) : 0 <= r < cycle s ->
  most_blocked s (cycle s * q + r) = q * gap s + Z.min r (gap s).
Proof.
  intros H. unfold most_blocked.
  rewrite <- (Z.div_unique (cycle s * q + r) (cycle s) q r) by lia.
  rewrite <- (Z.mod_unique (cycle s * q + r) (cycle s) q r) by lia. reflexivity.
Qed.

Ltac split_cycle z q r :=
  pose proof (Z.div_mod z (cycle s) ltac:(lia));
  pose proof (Z.mod_pos_bound z (cycle s) ltac:(lia));
  set (q := z / cycle s) in *; set (r := z mod cycle s) in *.

(* Counted from the end of p's slot, every cycle begins with the ticks that are not supplied. *)
Lemma blocked_upto (x : nat) :
  upto (blocked s) x =
    most_blocked s (Z.of_nat x + (cycle s - stop s)) - most_blocked s (cycle s - stop s).
Proof.
  induction x as [|x IH]; [change (Z.of_nat 0) with 0; rewrite Z.add_0_l; cbn [upto]; lia|].
  cbn [upto]. rewrite IH. unfold blocked, supplied.
  remember (Z.of_nat x) as z. replace (Z.of_nat (S x)) with (z + 1) by lia. clear IH Heqz x.
  split_cycle z q r.
  assert (E : forall i, 0 <= i <= 1 -> z + i + (cycle s - stop s) =
    if r + i <? stop s then cycle s * q + (r + i + cycle s - stop s)
    else cycle s * (q + 1) + (r + i - stop s))
    by (intros; destruct (Z.ltb_spec (r + i) (stop s)); nia).
  pose proof (E 0 ltac:(lia)) as E0. pose proof (E 1 ltac:(lia)) as E1. clear E.
  rewrite Z.add_0_r in E0. rewrite E0, E1.
  assert (G : gap s = cycle s - (stop s - start s)) by reflexivity.
  replace (r + 0) with r by lia.
  destruct (Z.ltb_spec r (stop s)); destruct (Z.ltb_spec (r + 1) (stop s));
    destruct (Z.leb_spec (start s) r); cbn [andb]; rewrite !most_blocked_at by lia; lia.
Qed.

Lemma blocked_within (a n : nat) : within (blocked s) a (a + n) <= most_blocked s (Z.of_nat n).
Proof.
  unfold within. rewrite !blocked_upto.
  assert (G : gap s = cycle s - (stop s - start s)) by reflexivity.
  remember (Z.of_nat a + (cycle s - stop s)) as y.
  replace (Z.of_nat (a + n) + (cycle s - stop s)) with (y + Z.of_nat n) by lia.
  remember (Z.of_nat n) as z. clear Heqy Heqz.
  split_cycle y q r. split_cycle z q' r'.
  replace (y + z) with (if r + r' <? cycle s then cycle s * (q + q') + (r + r')
    else cycle s * (q + q' + 1) + (r + r' - cycle s))
    by (destruct (Z.ltb_spec (r + r') (cycle s)); nia).
  rewrite H, H1. destruct (Z.ltb_spec (r + r') (cycle s)); rewrite !most_blocked_at by lia; lia.
Qed.

End Supply.

(** * The demand *)

Lemma brought_within (cost : source -> Z) (f : stream -> nat -> Z) (count : source -> Z -> Z)
    s sts a n :
  (forall each, In each (sources s) -> 0 <= cost each) ->
  (forall each st, conforms each st -> within (f st) a (a + n) <= count each (Z.of_nat n)) ->
  Forall2 conforms (sources s) sts ->
  within (brought cost f (sources s) sts) a (a + n) <= demand cost count s (Z.of_nat n).
Proof.
  unfold demand. intros C W F. induction F as [|each st ss sts E F IH].
  - unfold within. cbn. assert (Z0 : forall x, upto (brought cost f [] []) x = 0)
      by (induction x as [|x IH]; cbn in *; lia).
    rewrite !Z0. lia.
  - cbn [fold_right].
    assert (S : forall x, upto (brought cost f (each :: ss) (st :: sts)) x =
      cost each * upto (f st) x + upto (brought cost f ss sts) x)
      by (induction x as [|x I]; cbn [upto] in *; [lia|rewrite I; cbn [brought]; lia]).
    unfold within in *. rewrite !S. specialize (W _ _ E).
    specialize (IH ltac:(intros; apply C; right; assumption)).
    specialize (C each ltac:(left; reflexivity)). nia.
Qed.

Lemma arrived_within each st a n :
  conforms each st -> within (arrived st) a (a + n) <= arrivals each (Z.of_nat n).
Proof. intros (_ & H & _). apply H. Qed.

Lemma accepted_within each st a n :
  conforms each st -> within (accepted st) a (a + n) <= grants each (Z.of_nat n).
Proof.
  intros (P & H & M). specialize (H a n). unfold grants.
  pose proof (within_le (accepted st) (arrived st) a n ltac:(intros; apply P)).
  destruct (monitor each) as [m|].
  - specialize (M a n). lia.
  - pose proof (within_le (accepted st) (fun _ => 0) a n ltac:(intros; rewrite M; lia)).
    assert (Z0 : forall x, upto (fun _ => 0) x = 0) by (induction x; cbn; lia).
    unfold within in *. rewrite !Z0 in *. lia.
Qed.

(** * The theorem *)

Section Bounded.
Variables (s : system) (r : run).
Hypothesis ok : sane s = true.
Hypothesis run_ok : conforming s r.

Definition quiet (x : nat) : Prop := forall k, upto (executed r k) x = upto (work r k) x.

Lemma slot_ok : 0 <= start s < stop s /\ stop s <= cycle s.
Proof. unfold sane in ok. lia. Qed.

Lemma costs_ok each : In each (sources s) -> 0 <= top each /\ 0 <= own_bottom each /\ 0 <= job each.
Proof.
  intros I. unfold sane in ok. rewrite !andb_true_iff, forallb_forall in ok.
  destruct ok as [_ C]. specialize (C each I). unfold own_bottom. destruct (own each); lia.
Qed.

Lemma executed_positive k x : 0 <= executed r k x.
Proof. unfold executed. destruct (act r x) as [now|]; [destruct (same k now)|]; lia. Qed.

Ltac brought_by rule counted :=
  etransitivity; [apply within_le; intros; apply (rule _ _ run_ok)|];
  apply brought_within;
    [apply costs_ok|intros; apply counted; assumption|apply (c_streams _ _ run_ok)].

Lemma top_within a n : within (work r Top) a (a + n) <= demand top arrivals s (Z.of_nat n).
Proof. brought_by c_top arrived_within. Qed.

Lemma job_within a n : within (work r Job) a (a + n) <= demand job grants s (Z.of_nat n).
Proof. brought_by c_job accepted_within. Qed.

Lemma bottom_within a n : within (work r Bottom) a (a + n) <= own_work s (Z.of_nat n).
Proof. brought_by c_bottom arrived_within. Qed.

Lemma quiet_or_not x : quiet x \/ exists k, upto (executed r k) x < upto (work r k) x.
Proof.
  pose proof (fun k => c_causal _ _ run_ok k x) as C.
  destruct (Z.eq_dec (upto (executed r Top) x) (upto (work r Top) x));
  [destruct (Z.eq_dec (upto (executed r Switch) x) (upto (work r Switch) x));
  [destruct (Z.eq_dec (upto (executed r Job) x) (upto (work r Job) x));
  [destruct (Z.eq_dec (upto (executed r Bottom) x) (upto (work r Bottom) x))|]|]|].
  - left. intros []; assumption.
  - right. exists Bottom. specialize (C Bottom). lia.
  - right. exists Job. specialize (C Job). lia.
  - right. exists Switch. specialize (C Switch). lia.
  - right. exists Top. specialize (C Top). lia.
Qed.

(* The time t of the argument. *)
Lemma last_quiet (a : nat) :
  exists t, (t <= a)%nat /\ quiet t /\ forall x, (t < x <= a)%nat -> ~ quiet x.
Proof.
  induction a as [|a (t & L & Q & N)].
  - exists O. split; [lia|]. split; [intros k; reflexivity|intros; lia].
  - destruct (quiet_or_not (S a)) as [Q'|(k & K)].
    + exists (S a). split; [lia|]. split; [assumption|intros; lia].
    + exists t. split; [lia|]. split; [assumption|]. intros x X.
      destruct (Nat.eq_dec x (S a)) as [->|]; [|apply N; lia].
      intros Q'. specialize (Q' k). lia.
Qed.

(* Every instant belongs to one of the things that the bound counts; a switch that is paid late
   takes no longer than the top handlers that put it off. *)
Lemma instants (t n : nat) :
  (forall x, (t <= x < t + n)%nat -> supplied s x = true -> act r x <> None) ->
  Z.of_nat n + within (work r Switch) t (t + n) <= within (blocked s) t (t + n) +
    within (executed r Top) t (t + n) + within (executed r Job) t (t + n) +
    within (executed r Bottom) t (t + n) + within (executed r Switch) t (t + n).
Proof.
  unfold within. induction n as [|n IH]; intros A.
  - rewrite Nat.add_0_r. lia.
  - rewrite Nat.add_succ_r. cbn [upto].
    specialize (IH ltac:(intros; apply A; [lia|assumption])).
    specialize (A (t + n)%nat ltac:(lia)).
    pose proof (c_switch _ _ run_ok (t + n)) as W.
    assert (1 + work r Switch (t + n)%nat <= blocked s (t + n) + executed r Top (t + n) +
      executed r Job (t + n) + executed r Bottom (t + n) + executed r Switch (t + n)); [|lia].
    unfold blocked, executed. destruct (supplied s (t + n)%nat).
    + destruct W as [W|(_ & W & _)]; [|discriminate]. rewrite W.
      destruct (act r (t + n)%nat) as [[]|]; cbn; try lia. exfalso. apply A; reflexivity.
    + destruct W as [W|(W & _ & [E|E])]; rewrite W.
      * destruct (act r (t + n)%nat) as [[]|]; cbn; lia.
      * rewrite E. cbn. lia.
      * rewrite E. cbn. lia.
Qed.

Lemma executed_within k t n :
  quiet t -> within (executed r k) t (t + n) <= within (work r k) t (t + n).
Proof.
  intros Q. unfold within. specialize (Q k). pose proof (c_causal _ _ run_ok k (t + n)). lia.
Qed.

(* What waits at the end of a tick, or is never done by then, keeps p from idling in that tick. *)
Lemma active x : ~ quiet (S x) -> supplied s x = true -> act r x <> None.
Proof.
  intros N U. destruct (quiet_or_not (S x)) as [Q|(k & K)]; [contradiction|].
  apply (c_conserving _ _ run_ok x k U). cbn [upto] in *. pose proof (executed_positive k x). lia.
Qed.

(* A window that is enough for all that may arrive in it holds a quiet instant. *)
Lemma busy_window_ends (t n : nat) : quiet t -> (1 <= n)%nat ->
  needed s (own_work s (Z.of_nat n)) (Z.of_nat n) <= Z.of_nat n ->
  ~ forall x, (t < x <= t + n)%nat -> ~ quiet x.
Proof.
  intros Q P E N. apply (N (t + n)%nat); [lia|].
  pose proof (instants t n ltac:(intros; apply active; [apply N; lia|assumption])) as I.
  pose proof (executed_within Top t n Q). pose proof (executed_within Switch t n Q).
  pose proof (executed_within Job t n Q). pose proof (executed_within Bottom t n Q).
  pose proof (top_within t n). pose proof (job_within t n). pose proof (bottom_within t n).
  pose proof (blocked_within s slot_ok t n). unfold needed in E.
  intros k. pose proof (Q k). unfold within in *.
  pose proof (Q Top). pose proof (Q Switch). pose proof (Q Job). pose proof (Q Bottom).
  destruct k; lia.
Qed.

(* IRQs that arrive less than [next] after a quiet instant have ended after a time that is enough
   for all of them and for what interferes. *)
Lemma finishes (t a n : nat) (next : Z) : quiet t -> (t <= a)%nat ->
  (forall x, (t < x <= a)%nat -> ~ quiet x) ->
  Z.of_nat a - Z.of_nat t < next <= Z.of_nat n ->
  needed s (own_work s next) (Z.of_nat n) <= Z.of_nat n -> ended r a (t + n).
Proof.
  intros Q L N B E. unfold ended.
  destruct (Z.le_gt_cases (upto (work r Bottom) (S a)) (upto (executed r Bottom) (t + n))) as [|G];
    [assumption|exfalso].
  assert (I : Z.of_nat n + within (work r Switch) t (t + n) <= within (blocked s) t (t + n) +
    within (executed r Top) t (t + n) + within (executed r Job) t (t + n) +
    within (executed r Bottom) t (t + n) + within (executed r Switch) t (t + n)).
  { apply instants. intros x X. destruct (Nat.lt_ge_cases x a).
    - apply active, N. lia.
    - intros U. apply (c_conserving _ _ run_ok x Bottom U).
      pose proof (upto_mono (executed r Bottom) x (t + n) (executed_positive Bottom) ltac:(lia)).
      pose proof (upto_mono (work r Bottom) (S a) (S x) (c_work _ _ run_ok Bottom) ltac:(lia)).
      lia. }
  pose proof (executed_within Top t n Q). pose proof (executed_within Switch t n Q).
  pose proof (executed_within Job t n Q).
  pose proof (top_within t n). pose proof (job_within t n).
  pose proof (blocked_within s slot_ok t n).
  pose proof (bottom_within t (Z.to_nat next)) as W. rewrite Z2Nat.id in W by lia.
  pose proof (upto_mono (work r Bottom) (S a) (t + Z.to_nat next) (c_work _ _ run_ok Bottom)
    ltac:(lia)).
  pose proof (Q Bottom). unfold needed in E. unfold within in *. lia.
Qed.

Lemma covers_means latency until steps : forall from, covers s latency until from steps = true ->
  forall offset, from <= offset < until -> exists next finish,
    needed s (own_work s next) finish <= finish /\ offset < next <= finish /\
    finish <= offset + latency.
Proof.
  induction steps as [|(next, finish) rest IH]; cbn [covers]; intros from C offset O; [lia|].
  rewrite !andb_true_iff in C. destruct C as (((C1 & C2) & C3) & C4).
  destruct (Z.lt_ge_cases offset next).
  - exists next, finish. lia.
  - apply (IH next C4). lia.
Qed.

End Bounded.

(* In every conforming run of a system whose certificate is accepted, what p's IRQs brought until
   any tick a is executed before a + latency. *)
Theorem bounded (s : system) (c : certificate) (latency : Z) : check s c latency = true ->
  forall r, conforming s r -> forall a, ended r a (a + Z.to_nat latency).
Proof.
  unfold check. rewrite !andb_true_iff. intros (((ok & B) & E) & C) r R a.
  destruct (last_quiet s r R a) as (t & L & Q & N).
  assert (A : Z.of_nat a - Z.of_nat t < busy c).
  { destruct (Z.lt_ge_cases (Z.of_nat a - Z.of_nat t) (busy c)) as [|G]; [assumption|exfalso].
    apply (busy_window_ends s r ok R t (Z.to_nat (busy c)) Q); [lia|rewrite Z2Nat.id; lia|].
    intros x X. apply N. lia. }
  destruct (covers_means s latency (busy c) (steps c) 0 C (Z.of_nat a - Z.of_nat t) ltac:(lia))
    as (next & finish & F1 & F2 & F3).
  pose proof (finishes s r ok R t a (Z.to_nat finish) next Q L N) as F.
  rewrite Z2Nat.id in F by lia. specialize (F ltac:(lia) F1). unfold ended in *.
  etransitivity; [exact F|]. apply upto_mono; [apply executed_positive|lia].
Qed.
