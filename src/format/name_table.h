// Half a million tensor names without half a million allocations: names are numbered as they come
// and lie one behind the other in one text. One owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice {

class NameTable {
 public:
  NameTable();
  // Room for `n_names` names of `name_bytes` bytes in all, so that nothing grows before.
  void reserve(size_t n_names, size_t name_bytes);

  // The number of `name`, and whether it is new. At most 2^32 - 1 bytes of names in all (CHECK).
  std::pair<uint32_t, bool> insert(std::string_view name);
  std::optional<uint32_t> find(std::string_view name) const;

  size_t size() const { return ends_.size(); }
  // Valid until the next insert.
  std::string_view name(uint32_t number) const;
  // The numbers by rising bytes of their names.
  std::vector<uint32_t> sorted() const;

 private:
  struct Slot {
    uint32_t hash = 0;
    uint32_t number = kFree;
  };
  static constexpr uint32_t kFree = UINT32_MAX;

  // The slot that holds `name`, or the free one where it belongs.
  size_t slot_of(std::string_view name, uint32_t hash) const;
  void resize_slots(size_t n_slots);

  std::string text_;
  std::vector<uint32_t> ends_;  // of each name in text_
  std::vector<Slot> slots_;     // a power of two, at most half full; open addressing
};

}  // namespace sluice
