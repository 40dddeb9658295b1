// What the tests say of an exploration: the counts in docs/icc-proof.md are these lines.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>

#include "explorer.hpp"

namespace latenz::explorer {

constexpr const char* name_of(Model model) {
  return model == Model::weak ? "C++ memory model" : "interleaving";
}

// Larger bounds than fit into every run of the tests: LATENZ_EXPLORE=far.
inline bool far() {
  const char* const wanted = std::getenv("LATENZ_EXPLORE");
  return wanted != nullptr && std::string(wanted) == "far";
}

inline std::string told(const Report& report) {
  std::string text = report.stuck != 0 ? std::to_string(report.stuck) + " stuck states" : "";
  text += report.failure + "\n";
  for (const std::string& line : report.trace) text += "  " + line + "\n";
  return text;
}

inline Report prove(const std::string& what, Model model, const std::function<Report()>& explore) {
  const auto begin = std::chrono::steady_clock::now();
  Report report = explore();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  EXPECT_TRUE(report.passed()) << what << ": " << told(report);
  std::cout << "explored | " << what << " | " << name_of(model) << " | " << report.states << " | "
            << report.transitions << " | " << report.ends << " | " << taken.count() << " s"
            << std::endl;
  return report;
}

// The exploration must find a counterexample.
inline void expect_caught(const std::string& defect, const Report& report) {
  EXPECT_FALSE(report.passed()) << defect << " is not caught in " << report.states << " states";
  std::cout << "caught | " << defect << " | "
            << (report.failure.empty() ? "no end can be reached" : report.failure) << " | "
            << report.trace.size() << " accesses\n";
}

}  // namespace latenz::explorer
