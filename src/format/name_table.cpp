#include "format/name_table.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/error.h"

namespace sluice {
namespace {

constexpr size_t kSlotsMin = 64;

uint32_t hash_of(std::string_view name) {
  return static_cast<uint32_t>(std::hash<std::string_view>{}(name));
}

}  // namespace

NameTable::NameTable() : slots_(kSlotsMin) {}

void NameTable::reserve(size_t n_names, size_t name_bytes) {
  text_.reserve(name_bytes);
  ends_.reserve(n_names);
  size_t n_slots = slots_.size();
  while (n_slots < 2 * n_names) n_slots *= 2;
  resize_slots(n_slots);
}

std::pair<uint32_t, bool> NameTable::insert(std::string_view name) {
  const uint32_t hash = hash_of(name);
  size_t slot = slot_of(name, hash);
  if (slots_[slot].number != kFree) return {slots_[slot].number, false};
  if (2 * (size() + 1) > slots_.size()) {
    resize_slots(2 * slots_.size());
    slot = slot_of(name, hash);
  }
  CHECK(text_.size() + name.size() < UINT32_MAX);
  const auto number = static_cast<uint32_t>(size());
  text_ += name;
  ends_.push_back(static_cast<uint32_t>(text_.size()));
  slots_[slot] = Slot{hash, number};
  return {number, true};
}

std::optional<uint32_t> NameTable::find(std::string_view name) const {
  const Slot& slot = slots_[slot_of(name, hash_of(name))];
  if (slot.number == kFree) return std::nullopt;
  return slot.number;
}

std::string_view NameTable::name(uint32_t number) const {
  const size_t begin = number == 0 ? 0 : ends_[number - 1];
  return std::string_view(text_).substr(begin, ends_[number] - begin);
}

std::vector<uint32_t> NameTable::sorted() const {
  std::vector<uint32_t> order(size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [this](uint32_t a, uint32_t b) { return name(a) < name(b); });
  return order;
}

size_t NameTable::slot_of(std::string_view name, uint32_t hash) const {
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  while (slots_[at].number != kFree &&
         (slots_[at].hash != hash || this->name(slots_[at].number) != name)) {
    at = (at + 1) & mask;
  }
  return at;
}

void NameTable::resize_slots(size_t n_slots) {
  const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(n_slots));
  for (const Slot& slot : old) {
    if (slot.number == kFree) continue;
    size_t at = slot.hash & (n_slots - 1);
    while (slots_[at].number != kFree) at = (at + 1) & (n_slots - 1);
    slots_[at] = slot;
  }
}

}  // namespace sluice
