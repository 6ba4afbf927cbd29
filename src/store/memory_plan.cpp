// The floor first; then what is left is dealt out in the order that memory_plan.h gives.
#include "store/memory_plan.h"

#include <algorithm>
#include <utility>

#include "base/size.h"
#include "store/expert_store.h"

namespace sluice {
namespace {

// Share of the memory that activations may take before layers are pinned.
constexpr uint64_t kActivationShare = 16;

// Columns of MemoryPlan::text.
constexpr size_t kNameWidth = 32;
constexpr size_t kSizeWidth = 8;

// What must fit, in bytes.
struct Floor {
  uint64_t fixed = 0;
  uint64_t ring = 0;  // one slot of the largest layer
  uint64_t experts = 0;
  uint64_t rows = 0;
  int64_t expert_slots = 0;
  uint64_t total() const { return fixed + ring + experts + rows; }
};

// Which layers stay resident, and what the spine takes in all.
struct Pins {
  std::vector<bool> pinned;
  uint64_t pinned_bytes = 0;
  uint64_t ring_slot_bytes = 0;  // the largest streamed layer; 0 when all are pinned
  uint64_t bytes() const { return pinned_bytes + ring_slot_bytes; }
};

std::string counted(int64_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// --expert-cache fixes the slots, so they belong to the floor; otherwise the floor has the fewest.
Result<Floor> make_floor(const PlanInput& input) {
  Floor floor;
  for (const Claim& claim : input.fixed) floor.fixed += claim.bytes;
  for (const uint64_t bytes : input.layer_bytes) floor.ring = std::max(floor.ring, bytes);
  floor.rows = static_cast<uint64_t>(input.rows_min) * input.row_bytes;
  if (input.expert_slot_bytes == 0) return floor;

  floor.expert_slots = ExpertStore::kSlotsMin;
  if (input.expert_cache_bytes) {
    const uint64_t least = static_cast<uint64_t>(ExpertStore::kSlotsMin) * input.expert_slot_bytes;
    if (*input.expert_cache_bytes < least) {
      return Error{Code::kBudget, "--expert-cache " + format_size(*input.expert_cache_bytes) +
                                      " is below the least of " +
                                      counted(ExpertStore::kSlotsMin, "expert") + " (" +
                                      format_size(least) + "); raise --expert-cache to at least " +
                                      std::to_string(least)};
    }
    const auto asked = static_cast<int64_t>(*input.expert_cache_bytes / input.expert_slot_bytes);
    floor.expert_slots = std::clamp(asked, ExpertStore::kSlotsMin,
                                    std::max(ExpertStore::kSlotsMin, input.n_experts_total));
  }
  floor.experts = static_cast<uint64_t>(floor.expert_slots) * input.expert_slot_bytes;
  return floor;
}

Error below_floor(const PlanInput& input, const Floor& floor) {
  std::string parts;
  const auto add = [&parts](const std::string& name, uint64_t bytes) {
    if (bytes == 0) return;
    parts += (parts.empty() ? "" : ", ") + name + " " + format_size(bytes);
  };
  for (const Claim& claim : input.fixed) add(claim.name, claim.bytes);
  add("one layer", floor.ring);
  add(counted(floor.expert_slots, "expert"), floor.experts);
  add(counted(input.rows_min, "row"), floor.rows);
  const bool wide_cache = floor.expert_slots > ExpertStore::kSlotsMin;
  return Error{Code::kBudget, "--ram " + format_size(input.ram_bytes) + " is below the floor of " +
                                  format_size(floor.total()) + " (" + parts +
                                  "); raise --ram to at least " + std::to_string(floor.total()) +
                                  (wide_cache ? " or lower --expert-cache" : "")};
}

// `count` of the layers, evenly spread by index from the first, whose read no earlier layer's work
// could hide.
Pins spread_pins(const std::vector<uint64_t>& layer_bytes, size_t count) {
  const size_t n_layers = layer_bytes.size();
  Pins pins;
  pins.pinned.resize(n_layers);
  for (size_t layer = 0; layer < n_layers; ++layer) {
    const bool pinned = layer * count % n_layers < count;
    pins.pinned[layer] = pinned;
    if (pinned) {
      pins.pinned_bytes += layer_bytes[layer];
    } else {
      pins.ring_slot_bytes = std::max(pins.ring_slot_bytes, layer_bytes[layer]);
    }
  }
  return pins;
}

// The most layers whose evenly spread set fits `budget` together with its ring slot. A budget of
// the largest layer always suffices for none.
Pins choose_pins(const std::vector<uint64_t>& layer_bytes, uint64_t budget) {
  for (size_t count = layer_bytes.size();; --count) {
    Pins pins = spread_pins(layer_bytes, count);
    if (pins.bytes() <= budget) return pins;
    CHECK(count > 0);
  }
}

// How many of at most `wanted` things of `unit_bytes` fit `rest`; takes them out of it.
int64_t take(int64_t wanted, uint64_t unit_bytes, uint64_t& rest) {
  if (wanted <= 0) return 0;
  if (unit_bytes == 0) return wanted;
  const uint64_t count = std::min(static_cast<uint64_t>(wanted), rest / unit_bytes);
  rest -= count * unit_bytes;
  return static_cast<int64_t>(count);
}

void add_claims(MemoryPlan& plan, const PlanInput& input, const Pins& pins) {
  plan.claims = input.fixed;
  const auto add = [&plan](std::string name, uint64_t bytes) {
    if (bytes > 0) plan.claims.push_back({std::move(name), bytes});
  };
  add("spine ring (" + counted(plan.ring_slots, "slot") + ")",
      static_cast<uint64_t>(plan.ring_slots) * plan.ring_slot_bytes);
  add("activations (" + counted(plan.rows_max, "row") + ")",
      static_cast<uint64_t>(plan.rows_max) * input.row_bytes);
  add("pinned layers (" + std::to_string(plan.n_pinned()) + " of " +
          std::to_string(plan.layer_pinned.size()) + ")",
      pins.pinned_bytes);
  add("experts (" + std::to_string(plan.expert_slots) + " of " +
          std::to_string(input.n_experts_total) + ")",
      static_cast<uint64_t>(plan.expert_slots) * input.expert_slot_bytes);
}

}  // namespace

Result<MemoryPlan> make_memory_plan(const PlanInput& input) {
  TRY(const Floor floor, make_floor(input));
  if (input.ram_bytes < floor.total()) return below_floor(input, floor);
  uint64_t rest = input.ram_bytes - floor.total();

  // Activations are set aside as bytes, not as whole rows, so that a larger limit never pins less.
  const int64_t rows_cap = std::max(input.rows_wanted, input.rows_min);
  const uint64_t share = std::clamp(input.ram_bytes / kActivationShare, floor.rows,
                                    static_cast<uint64_t>(rows_cap) * input.row_bytes);
  uint64_t aside = std::min(rest, share - floor.rows);
  const Pins pins = choose_pins(input.layer_bytes, floor.ring + rest - aside);
  rest = floor.ring + rest - aside - pins.bytes();

  MemoryPlan plan;
  plan.ram_bytes = input.ram_bytes;
  plan.floor_bytes = floor.total();
  plan.layer_pinned = pins.pinned;
  plan.ring_slots = pins.ring_slot_bytes > 0 ? 1 : 0;
  plan.ring_slot_bytes = pins.ring_slot_bytes;
  plan.rows_max = input.rows_min + take(rows_cap - input.rows_min, input.row_bytes, aside);
  rest += aside;
  plan.expert_slots = floor.expert_slots;
  if (input.expert_slot_bytes > 0 && !input.expert_cache_bytes) {
    plan.expert_slots +=
        take(input.n_experts_total - plan.expert_slots, input.expert_slot_bytes, rest);
  }
  plan.rows_max += take(rows_cap - plan.rows_max, input.row_bytes, rest);
  add_claims(plan, input, pins);
  CHECK(plan.total_bytes() <= plan.ram_bytes);
  return plan;
}

uint64_t MemoryPlan::total_bytes() const {
  uint64_t total = 0;
  for (const Claim& claim : claims) total += claim.bytes;
  return total;
}

int64_t MemoryPlan::n_pinned() const {
  return std::count(layer_pinned.begin(), layer_pinned.end(), true);
}

std::string MemoryPlan::text() const {
  std::string text;
  const auto add = [&text](const std::string& name, uint64_t bytes, const std::string& tail) {
    const std::string size = format_size(bytes);
    text += name + std::string(kNameWidth - std::min(kNameWidth - 1, name.size()), ' ');
    text += std::string(kSizeWidth - std::min(kSizeWidth, size.size()), ' ') + size + tail + "\n";
  };
  for (const Claim& claim : claims) add(claim.name, claim.bytes, "");
  add("total", total_bytes(), " of " + format_size(ram_bytes));
  return text;
}

}  // namespace sluice
