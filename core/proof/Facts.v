(* SPDX-License-Identifier: Apache-2.0

   Prints what core/proof/check shows. *)
From Coq Require Import ZArith List.
From Latenz Require Import Runs SlotsForm Search Gateway Served.
Import ListNotations.
Open Scope Z_scope.

Print Assumptions bounded.
Print Assumptions holds_of_gateway_in_plain.
Print Assumptions served_conforms.
Eval vm_compute in (bounds false).
Eval vm_compute in (bounds true).
Eval vm_compute in refusals.
