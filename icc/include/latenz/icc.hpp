// SPDX-License-Identifier: Apache-2.0
// Communication between processors that share a piece of memory and nothing else. This header has
// all of it; each part can be included by itself.
#pragma once

#include "latenz/icc/clock.hpp"
#include "latenz/icc/deadline.hpp"
#include "latenz/icc/exchange.hpp"
#include "latenz/icc/fixed.hpp"
#include "latenz/icc/latest.hpp"
#include "latenz/icc/mailbox.hpp"
#include "latenz/icc/platform.hpp"
#include "latenz/icc/pool.hpp"
#include "latenz/icc/problem.hpp"
#include "latenz/icc/result.hpp"
#include "latenz/icc/ring.hpp"
#include "latenz/icc/wire_type.hpp"
