// Room that many may claim parts of, such as memory for the bodies being read. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>

namespace sluice {

class ByteBudget {
 public:
  explicit ByteBudget(size_t bytes) : bytes_(bytes) {}

  // Holds its part while it lives, unless it was not granted.
  class [[nodiscard]] Claim {
   public:
    Claim(ByteBudget& budget, size_t bytes) : budget_(budget), bytes_(bytes) {
      granted_ = budget.claimed_.fetch_add(bytes) + bytes <= budget.bytes_;
      if (!granted_) budget.claimed_ -= bytes;
    }
    ~Claim() {
      if (granted_) budget_.claimed_ -= bytes_;
    }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    bool granted() const { return granted_; }

   private:
    ByteBudget& budget_;
    size_t bytes_;
    bool granted_ = false;
  };

 private:
  const size_t bytes_;
  std::atomic<size_t> claimed_{0};
};

}  // namespace sluice
