# Cortex-R52 without an operating system.
set(LATENZ_PROCESSOR cortex-r52)
include(${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi.cmake)
