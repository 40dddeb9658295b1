# The channels hammered on real memory and under ThreadSanitizer, and their algorithms under loom.
find_package(Threads REQUIRED)

add_executable(latenz-icc-torture ${CMAKE_CURRENT_LIST_DIR}/torture_latest.cpp)
target_link_libraries(latenz-icc-torture PRIVATE latenz::icc)
target_compile_options(latenz-icc-torture PRIVATE -O2)
add_test(NAME icc_torture COMMAND latenz-icc-torture --bytes 1024 --reads 300000)

# Two processes that wait for each other asleep: 30,000 messages, and about as many sleeps, each.
add_executable(latenz-icc-sleep ${CMAKE_CURRENT_LIST_DIR}/torture_sleep.cpp)
target_link_libraries(latenz-icc-sleep PRIVATE latenz::icc)
target_compile_options(latenz-icc-sleep PRIVATE -O2)
foreach(channel mailbox exchange ring)
  foreach(bell futex eventfd c)
    add_test(NAME icc_sleep_${bell}_${channel}
             COMMAND latenz-icc-sleep torture ${bell} ${channel} 30000)
  endforeach()
endforeach()

add_executable(latenz-icc-tsan ${CMAKE_CURRENT_LIST_DIR}/tsan_hammer.cpp)
target_link_libraries(latenz-icc-tsan PRIVATE latenz::icc Threads::Threads)
target_compile_options(latenz-icc-tsan PRIVATE -O1 -fsanitize=thread)
target_link_options(latenz-icc-tsan PRIVATE -fsanitize=thread)
foreach(channel mailbox exchange latest ring lossless_ring pool asleep)
  add_test(NAME icc_tsan_${channel} COMMAND latenz-icc-tsan ${channel})
endforeach()
# What must be reported, or else silence says nothing.
add_test(NAME icc_tsan_reports_a_planted_race COMMAND latenz-icc-tsan planted)
set_tests_properties(icc_tsan_reports_a_planted_race PROPERTIES
                     PASS_REGULAR_EXPRESSION "WARNING: ThreadSanitizer: data race")

add_test(NAME icc_loom COMMAND ${CMAKE_CURRENT_LIST_DIR}/../proof/check
         ${CMAKE_CURRENT_BINARY_DIR}/loom)
set_tests_properties(icc_loom PROPERTIES SKIP_RETURN_CODE 77)
