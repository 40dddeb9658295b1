// Which of the two libraries is explored: that for C++, or, with LATENZ_EXPLORE_C, that for C99.
#pragma once

#ifdef LATENZ_EXPLORE_C
#include "c_channels.hpp"
#else
#include "latenz/icc.hpp"
#endif

namespace latenz::explorer {

#ifdef LATENZ_EXPLORE_C
namespace under_test = latenz::icc::c;
#else
namespace under_test = latenz::icc;
#endif

}  // namespace latenz::explorer
