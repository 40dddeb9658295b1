# A 32-bit Arm core without an operating system; LATENZ_PROCESSOR is set by who includes this.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR arm)
set(CMAKE_CXX_COMPILER arm-none-eabi-g++)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_CXX_FLAGS_INIT "-mcpu=${LATENZ_PROCESSOR} -mthumb -ffreestanding -fno-exceptions -fno-rtti")
