// SPDX-License-Identifier: Apache-2.0
// What a process does that records what others measure.
#pragma once

#include <csignal>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace latenz::probe {

/// Blocks the signals that end a run, and returns them; one that was ignored when the program
/// started stays so (nohup).
sigset_t block_ending_signals();

/// Makes lost readers and file size limits errors of the call that meets them.
void ignore_output_signals();

/// Lets this process run beside the measured CPUs, if there are others.
void leave_measured_cpus(const std::vector<unsigned>& cpus);

/// Makes a folder and those above it. Throws `Failure`.
void create_folder(const std::filesystem::path& folder);

/// How an account calls an end by an output error.
[[nodiscard]] std::string_view status_of_output(int error);

/// One line for the user on an output error.
[[nodiscard]] std::string told_output_error(std::string_view program,
                                            const std::filesystem::path& output, int error);

}  // namespace latenz::probe
