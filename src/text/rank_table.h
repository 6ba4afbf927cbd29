// The vocabulary's byte strings and their ranks: bytes by id, and id by bytes through one open hash
// table. Immutable after build; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/ids.h"

namespace sluice {

class RankTable {
 public:
  static constexpr TokenId kNone = -1;

  // Parses the text of a tiktoken.model file: lines of base64(bytes), a space and a rank; the ranks
  // are 0..n-1, each once, in any order. `name` begins errors. All 256 single bytes must be there.
  static Result<RankTable> parse(std::string_view model, std::string_view name);

  TokenId size() const { return static_cast<TokenId>(ends_.size()); }
  size_t longest_bytes() const { return longest_bytes_; }

  // 0 <= id < size().
  std::string_view bytes(TokenId id) const {
    const size_t begin = id == 0 ? 0 : ends_[static_cast<size_t>(id) - 1];
    return std::string_view(blob_).substr(begin, ends_[static_cast<size_t>(id)] - begin);
  }

  // The id whose bytes are exactly `bytes` (not empty), or kNone.
  TokenId find(std::string_view bytes) const {
    if (bytes.size() <= 2) return bytes.size() == 1 ? of_byte_[first(bytes)] : find_pair(bytes);
    if (bytes.size() > longest_bytes_) return kNone;
    const uint32_t hash = hash_of(bytes);
    for (size_t at = hash & mask_; slots_[at].id != kNone; at = (at + 1) & mask_) {
      if (slots_[at].hash == hash && this->bytes(slots_[at].id) == bytes) return slots_[at].id;
    }
    return kNone;
  }

 private:
  struct Slot {
    uint32_t hash;
    TokenId id;  // kNone: empty
  };

  struct Entry {
    std::string bytes;
    size_t line = 0;  // 1-based; 0: not seen yet
  };

  RankTable() = default;
  Status build(const std::vector<Entry>& entries, std::string_view name);

  static uint8_t first(std::string_view bytes) { return static_cast<uint8_t>(bytes[0]); }
  TokenId find_pair(std::string_view bytes) const {
    return of_pair_[static_cast<size_t>(first(bytes)) << 8 | static_cast<uint8_t>(bytes[1])];
  }

  // Multiply and fold, 8 bytes at a time. Requires at least 3 bytes.
  static uint32_t hash_of(std::string_view bytes) {
    constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio, odd
    uint64_t h = bytes.size() * kMultiplier;
    const char* p = bytes.data();
    size_t left = bytes.size();
    const auto mix = [&](uint64_t word) {
      h = (h ^ word) * kMultiplier;
      h ^= h >> 32;
    };
    for (; left >= 8; left -= 8, p += 8) {
      uint64_t word;
      std::memcpy(&word, p, 8);
      mix(word);
    }
    if (left >= 4) {  // two overlapping halves cover 4..7 bytes
      uint32_t head, tail;
      std::memcpy(&head, p, 4);
      std::memcpy(&tail, p + left - 4, 4);
      mix(static_cast<uint64_t>(head) << 32 | tail);
    } else if (left > 0) {
      mix(static_cast<uint64_t>(static_cast<uint8_t>(p[0])) << 16 |
          static_cast<uint64_t>(static_cast<uint8_t>(p[left / 2])) << 8 |
          static_cast<uint8_t>(p[left - 1]));
    }
    return static_cast<uint32_t>(h ^ h >> 29);
  }

  std::string blob_;            // all byte strings, in id order
  std::vector<uint32_t> ends_;  // [n] end of each in blob_
  std::vector<Slot> slots_;     // [power of two]; strings of 3 bytes and more
  size_t mask_ = 0;
  std::vector<TokenId> of_pair_;  // [65536] by first << 8 | second byte
  TokenId of_byte_[256];
  size_t longest_bytes_ = 0;
};

}  // namespace sluice
