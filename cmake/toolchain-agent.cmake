# A static program for any Linux of one kind of processor, by zig's clang with musl and libc++.
# LATENZ_ZIG: the program zig; LATENZ_TARGET: what it calls the target, such as aarch64-linux-musl.
set(CMAKE_SYSTEM_NAME Linux)
# Nothing is linked to try the compiler, nor to identify it (a target in its variable sees to that):
# zig would build libc++ once more for each way of asking.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES LATENZ_ZIG LATENZ_TARGET)
string(REGEX MATCH "^[a-z0-9_]+" CMAKE_SYSTEM_PROCESSOR ${LATENZ_TARGET})
set(CMAKE_CROSSCOMPILING ON)
set(CMAKE_CXX_COMPILER ${LATENZ_ZIG} c++)
set(CMAKE_CXX_COMPILER_TARGET ${LATENZ_TARGET})
# Nothing of where it is built gets into the program: the same sources make the same bytes.
set(CMAKE_CXX_FLAGS_INIT
    "-ffunction-sections -fdata-sections -ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -fno-ident")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static -s -Wl,--gc-sections -Wl,--build-id=none")
