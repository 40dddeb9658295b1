// SPDX-License-Identifier: Apache-2.0
// A dispatcher with its own room.
#pragma once

template <typename Dispatcher>
class Roomy : public Dispatcher {
 public:
  Roomy() { this->use(room_); }

 private:
  Dispatcher::Room room_;
};
