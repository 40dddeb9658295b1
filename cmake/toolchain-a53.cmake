# Cortex-A53 (AArch64) without an operating system; its errata are worked around by compiler and linker.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_CXX_FLAGS_INIT "-mcpu=cortex-a53 -ffreestanding -fno-exceptions -fno-rtti")
set(LATENZ_PROCESSOR cortex-a53)
add_compile_options(-mfix-cortex-a53-835769)
add_link_options(-mfix-cortex-a53-835769 -mfix-cortex-a53-843419) # the second is the linker's alone
