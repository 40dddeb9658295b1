# The hypervisor's image, for boards with a Cortex-A53, and the programs that run in partitions.
set(memory ${PROJECT_SOURCE_DIR}/core/src/memory.cpp)
set_source_files_properties(${memory} PROPERTIES COMPILE_OPTIONS
  -fno-tree-loop-distribute-patterns)
# Only what runs while slots do has to be quick; the rest has to be small.
set_source_files_properties(src/report.cpp src/core/configuration_check.cpp src/core/tdma_plan.cpp
  src/aarch64/own_translation.cpp src/aarch64/translation_table.cpp src/gicv2/gic.cpp
  src/gicv3/gic.cpp PROPERTIES COMPILE_OPTIONS -Os)

# One program for each architecture of interrupt controllers.
function(add_hypervisor name gic)
  file(GLOB hypervisor_sources CONFIGURE_DEPENDS
    src/*.cpp src/core/*.cpp src/aarch64/*.cpp src/aarch64/*.S src/boards/*.cpp src/${gic}/*.cpp)
  add_executable(${name} ${hypervisor_sources} ${memory})
  target_include_directories(${name} PRIVATE src src/core src/${gic})
  target_link_libraries(${name} PRIVATE latenz::core gcc)
  target_compile_definitions(${name} PRIVATE LATENZ_VERSION="${PROJECT_VERSION}")
  target_compile_options(${name} PRIVATE -O2 -fno-pie -mgeneral-regs-only -mstrict-align -mno-outline-atomics
    -Wno-psabi -fno-threadsafe-statics -fno-asynchronous-unwind-tables -fno-stack-protector
    -ffunction-sections -fdata-sections $<$<COMPILE_LANGUAGE:ASM>:-mcpu=${LATENZ_PROCESSOR}>)
  target_link_options(${name} PRIVATE -nostdlib -no-pie -T ${CMAKE_CURRENT_SOURCE_DIR}/image.ld
    -Wl,--gc-sections -Wl,--build-id=none -Wl,-z,max-page-size=4096)
  set_target_properties(${name} PROPERTIES SUFFIX .elf LINK_DEPENDS
    ${CMAKE_CURRENT_SOURCE_DIR}/image.ld)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.elf DESTINATION firmware/hypervisor)
endfunction()

add_hypervisor(hypervisor gicv2)
add_hypervisor(hypervisor-gicv3 gicv3)
