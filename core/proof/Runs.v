(* SPDX-License-Identifier: Apache-2.0

   What the slots form of docs/bound.md speaks of: systems as one partition p sees them, what the
   processor did tick by tick, and which runs follow docs/rules.md as far as the form needs it.

   Time is counted in ticks of 1 ns from the start of the first cycle. Everything is an integer.
   Windows are half open: [a, b) holds the ticks a <= x < b. *)
From Coq Require Import ZArith List Lia Bool.
Import ListNotations.
Open Scope Z_scope.

(** * Sums over ticks *)

(* What f adds up to before tick x. *)
Fixpoint upto (f : nat -> Z) (x : nat) : Z :=
  match x with O => 0 | S before => upto f before + f before end.

Definition within (f : nat -> Z) (a b : nat) : Z := upto f b - upto f a.

Lemma within_le (f g : nat -> Z) (a n : nat) :
  (forall x, (a <= x < a + n)%nat -> f x <= g x) -> within f a (a + n) <= within g a (a + n).
Proof.
  unfold within. induction n as [|n IH]; intros H.
  - rewrite Nat.add_0_r. lia.
  - rewrite Nat.add_succ_r. cbn.
    assert (f (a + n)%nat <= g (a + n)%nat) by (apply H; lia).
    assert (upto f (a + n) - upto f a <= upto g (a + n) - upto g a)
      by (apply IH; intros; apply H; lia).
    lia.
Qed.

Lemma upto_mono (f : nat -> Z) (a b : nat) :
  (forall x, 0 <= f x) -> (a <= b)%nat -> upto f a <= upto f b.
Proof.
  intros H. induction 1 as [|b _ IH]; [lia|]. cbn. specialize (H b). lia.
Qed.

(** * Systems *)

(* How densely IRQs come, in ns (event_model.hpp). [distances ds]: any i + 2 of them in a row take
   at least the i-th distance, from 0. *)
Inductive model :=
  | periodic (period jitter min_distance : Z)
  | distances (ds : list Z).

Definition covering (a b : Z) : Z := (a + b - 1) / b.

Fixpoint within_distances (ds : list Z) (window count : Z) : Z :=
  match ds with
  | [] => count
  | d :: rest => if window <=? d then count + 1 else within_distances rest window (count + 1)
  end.

(* The most IRQs in any window of this length: exact up to the longest distance, safe beyond. *)
Definition eta (m : model) (window : Z) : Z :=
  if window <=? 0 then 0 else
  match m with
  | periodic p j d =>
      let periods := covering (window + j) p in
      if 0 <? d then Z.min periods (covering window d) else periods
  | distances ds =>
      let longest := last ds 0 in
      let parts := (window - 1) / longest in
      Z.of_nat (length ds) * parts + within_distances ds (window - longest * parts) 0
  end.

(* A source as the analysed partition p sees it; costs in ns. *)
Record source := {
  own : bool;              (* its bottom handlers are p's *)
  arrival : model;
  monitor : option model;  (* None: its IRQs are never interposed *)
  top : Z;                 (* C'_TH, the monitor's cost included where it runs *)
  bottom : Z;              (* C_BH *)
  job : Z                  (* what an interposed job costs besides p's bottom handlers *)
}.

(* p has one slot in a cycle. It is supplied from [start], when its slot's switch is paid, until
   [stop], when the slot ends, both counted in ns from the start of the cycle. *)
Record system := { cycle : Z; start : Z; stop : Z; sources : list source }.

Definition supplied (s : system) (x : nat) : bool :=
  let phase := Z.of_nat x mod cycle s in (start s <=? phase) && (phase <? stop s).

Definition blocked (s : system) (x : nat) : Z := if supplied s x then 0 else 1.

(** * Runs: what the processor did, tick by tick *)

Inductive kind := Top | Switch | Job | Bottom.

(* IRQs of a source that arrive at a tick, and those of them that its monitor accepts. *)
Record stream := { arrived : nat -> Z; accepted : nat -> Z }.

(* [work k x]: how many ns the IRQs that arrive at tick x will have executed as kind k in the end;
   a job that is dropped executes none. [act x] is what is executed at tick x: None if nothing of
   these is. Bottom handlers are p's alone. *)
Record run := {
  streams : list stream;
  work : kind -> nat -> Z;
  act : nat -> option kind
}.

Definition same (a b : kind) : bool :=
  match a, b with Top, Top | Switch, Switch | Job, Job | Bottom, Bottom => true | _, _ => false end.

Definition executed (r : run) (k : kind) (x : nat) : Z :=
  match act r x with Some now => if same k now then 1 else 0 | None => 0 end.

Definition keeps (m : model) (f : nat -> Z) : Prop :=
  forall a n, within f a (a + n) <= eta m (Z.of_nat n).

Definition conforms (s : source) (st : stream) : Prop :=
  (forall x, 0 <= accepted st x <= arrived st x) /\ keeps (arrival s) (arrived st) /\
  match monitor s with
  | None => forall x, accepted st x = 0
  | Some m => keeps m (accepted st)
  end.

Fixpoint brought (cost : source -> Z) (f : stream -> nat -> Z)
    (ss : list source) (sts : list stream) (x : nat) : Z :=
  match ss, sts with
  | s :: ss, st :: sts => cost s * f st x + brought cost f ss sts x
  | _, _ => 0
  end.

Definition own_bottom (s : source) : Z := if own s then bottom s else 0.

(* What docs/rules.md says of an execution, as far as the slots form needs it. *)
Record conforming (s : system) (r : run) : Prop := {
  c_streams : Forall2 conforms (sources s) (streams r);
  c_work : forall k x, 0 <= work r k x;
  c_top : forall x, work r Top x <= brought top arrived (sources s) (streams r) x;
  c_job : forall x, work r Job x <= brought job accepted (sources s) (streams r) x;
  c_bottom : forall x, work r Bottom x <= brought own_bottom arrived (sources s) (streams r) x;
  (* nothing is executed before it has come *)
  c_causal : forall k x, upto (executed r k) x <= upto (work r k) x;
  (* slot switches come due 1 ns a tick while they would be paid if nothing put them off; p is not
     supplied then, and only top handlers put them off *)
  c_switch : forall x, work r Switch x = 0 \/
    work r Switch x = 1 /\ supplied s x = false /\ (act r x = Some Switch \/ act r x = Some Top);
  (* where p is supplied the processor does not idle, nor serves others' queues, while work waits *)
  c_conserving : forall x k, supplied s x = true ->
    upto (executed r k) x < upto (work r k) (S x) -> act r x <> None
}.

(* What p's bottom handlers bring with all IRQs up to tick a is executed before tick b. As the queue
   is first in, first out, the bottom handlers of these IRQs have ended by then. *)
Definition ended (r : run) (a b : nat) : Prop :=
  upto (work r Bottom) (S a) <= upto (executed r Bottom) b.
