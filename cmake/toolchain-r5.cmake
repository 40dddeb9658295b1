# Cortex-R5 without an operating system.
set(LATENZ_PROCESSOR cortex-r5)
include(${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi.cmake)
