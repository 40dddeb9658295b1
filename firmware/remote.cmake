# The resident loader of the ZCU102's first real-time core, for boards that cannot reset it.
add_executable(loader-zcu102-r5 src/remote/loader.cpp src/remote/loader_start.S)
target_link_libraries(loader-zcu102-r5 PRIVATE latenz::core)
target_compile_options(loader-zcu102-r5 PRIVATE -O2
  $<$<COMPILE_LANGUAGE:ASM>:-mcpu=${LATENZ_PROCESSOR}>)
target_link_options(loader-zcu102-r5 PRIVATE -nostdlib
  -T ${CMAKE_CURRENT_SOURCE_DIR}/src/remote/loader.ld -Wl,--build-id=none
  -Wl,--no-warn-rwx-segments -Wl,-z,max-page-size=4096)
set_target_properties(loader-zcu102-r5 PROPERTIES SUFFIX .elf
  LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/remote/loader.ld)
install(PROGRAMS ${CMAKE_CURRENT_BINARY_DIR}/loader-zcu102-r5.elf
  DESTINATION firmware/zcu102-r5-loader RENAME loader.elf)

# What Linux talks to by channels (icc/examples/linux_echo.cpp).
add_executable(echo-zcu102-r5 src/remote/echo.cpp ${memory} src/output.cpp src/parameters.cpp
  ${sources_arm})
target_include_directories(echo-zcu102-r5 PRIVATE boards/zcu102-r5 src src/arm
  ${PROJECT_SOURCE_DIR}/icc/examples)
target_link_libraries(echo-zcu102-r5 PRIVATE latenz::core latenz::icc gcc)
target_compile_definitions(echo-zcu102-r5 PRIVATE LATENZ_OPTIMIZATION="O2"
  LATENZ_VERSION="${PROJECT_VERSION}")
target_compile_options(echo-zcu102-r5 PRIVATE -O2 -fno-pie
  $<$<COMPILE_LANGUAGE:ASM>:-mcpu=${LATENZ_PROCESSOR}>)
target_link_options(echo-zcu102-r5 PRIVATE -nostdlib -no-pie
  -T ${CMAKE_CURRENT_SOURCE_DIR}/image.ld -Wl,--defsym=image_base=0x70000000 -Wl,--gc-sections
  -Wl,--build-id=none -Wl,--no-warn-rwx-segments -Wl,-z,max-page-size=4096)
set_target_properties(echo-zcu102-r5 PROPERTIES SUFFIX .elf
  LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/image.ld)
install(PROGRAMS ${CMAKE_CURRENT_BINARY_DIR}/echo-zcu102-r5.elf
  DESTINATION firmware/zcu102-r5-echo RENAME echo.elf)
