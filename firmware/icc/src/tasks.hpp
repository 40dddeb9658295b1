// SPDX-License-Identifier: Apache-2.0
// The tasks of a pair, one file each. Each is done by both programs at once.
#pragma once

namespace latenz::pair {

/// How long messages take.
void measure();

/// Whether all messages arrive, whole and in order, in both directions.
void check();

/// Whether unlike types and damaged memory are refused.
void meet_unlike();

/// Whether one side goes on when the other restarts at any point.
void restart();

/// Whether this is a start in the midst of `restart`, which then goes on.
bool resumes_after_restart();

}  // namespace latenz::pair
