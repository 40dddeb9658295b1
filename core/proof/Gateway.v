(* SPDX-License-Identifier: Apache-2.0

   experiments/systems/can-gateway.toml as each of its partitions sees it, terms written by hand
   from the file, and its bounds by the slots form. They are those of `latenz bound` in the modes
   plain and paper (python/tests/analysis/test_bound_proof.py), and hold in every conforming run. *)
From Coq Require Import ZArith List.
From Latenz Require Import Runs SlotsForm Search.
Import ListNotations.
Open Scope Z_scope.

Inductive partition := Body | Gateway | Diagnosis.

Definition is (a b : partition) : bool :=
  match a, b with
  | Body, Body | Gateway, Gateway | Diagnosis, Diagnosis => true
  | _, _ => false
  end.

Definition slot_switch := 12000.
Definition monitor_cost := 150.
Definition job_overhead := 900 + 2 * 6000. (* C_sched + 2 C_ctx *)

(* A source of partition q as p sees it: a job of p's own costs it the overhead only. *)
Definition seen (p q : partition) (model : model) (limit : option Runs.model) (top bottom : Z) :=
  {| own := is p q; arrival := model; monitor := limit;
     top := match limit with None => top | Some _ => top + monitor_cost end; bottom := bottom;
     job := if is p q then job_overhead else bottom + job_overhead |}.

Definition begins (p : partition) : Z :=
  match p with Body => 0 | Gateway => 4000000 | Diagnosis => 8000000 end.
Definition ends (p : partition) : Z :=
  match p with Body => 4000000 | Gateway => 8000000 | Diagnosis => 10000000 end.

Definition engine := distances [222000; 444000; 666000; 888000; 10000000].

(* [top] is the engine's C_TH. *)
Definition gateway_of (top : Z) (monitored : bool) (p : partition) : system :=
  let limit m := if monitored then Some m else None in
  {| cycle := 10000000; start := begins p + slot_switch; stop := ends p; sources := [
       seen p Gateway engine (limit engine) top 35000;
       seen p Gateway (periodic 20000000 2000000 1000000) (limit (distances [1000000])) 2000 35000;
       seen p Body (periodic 50000000 0 0) None 1500 20000;
       seen p Diagnosis (distances [1000000]) (limit (distances [5000000])) 3000 60000] |}.

Definition gateway : bool -> partition -> system := gateway_of 2000.

(* Mode plain has no monitors. Partitions in the order of the file. *)
Definition bounds (monitored : bool) : list (option Z) :=
  map (fun p => bound (gateway monitored p)) [Body; Gateway; Diagnosis].

(* Must fail: each bound less 1 ns; each certificate where the engine's C_TH is 1 ns more. *)
Definition refuses (monitored : bool) (p : partition) : bool * bool :=
  let c := find (gateway monitored p) in
  (negb (check (gateway monitored p) c (shown c - 1)),
   negb (check (gateway_of 2001 monitored p) c (shown c))).

Theorem holds_of_gateway_in_plain :
  forall r, conforming (gateway false Gateway) r -> forall a, ended r a (a + Z.to_nat 6116500).
Proof. apply bound_holds. vm_compute. reflexivity. Qed.

Definition refusals :=
  map (refuses false) [Body; Gateway; Diagnosis] ++ map (refuses true) [Body; Gateway; Diagnosis].
