#include "text/bpe.h"

#include <cstdint>
#include <limits>
#include <queue>

namespace sluice {
namespace {

// Up to this many bytes a scan for the lowest rank is cheaper than a heap.
constexpr size_t kScanBytesMax = 64;

constexpr uint32_t kNoRank = std::numeric_limits<uint32_t>::max();

uint32_t rank_of(const RankTable& ranks, std::string_view bytes) {
  const TokenId id = ranks.find(bytes);
  return id == RankTable::kNone ? kNoRank : static_cast<uint32_t>(id);
}

void merge_by_scan(const RankTable& ranks, std::string_view piece, std::vector<TokenId>& out) {
  // Part i spans [start[i], start[i + 1]); pair[i] is the rank of parts i and i + 1 joined.
  uint32_t start[kScanBytesMax + 1];
  uint32_t pair[kScanBytesMax];
  size_t parts = piece.size();
  for (size_t i = 0; i <= parts; ++i) start[i] = static_cast<uint32_t>(i);
  const auto joined = [&](size_t i) {
    if (i + 1 >= parts) return kNoRank;
    return rank_of(ranks, piece.substr(start[i], start[i + 2] - start[i]));
  };
  for (size_t i = 0; i < parts; ++i) pair[i] = joined(i);
  while (true) {
    size_t best = 0;
    for (size_t i = 1; i < parts; ++i) {
      if (pair[i] < pair[best]) best = i;
    }
    if (pair[best] == kNoRank) break;
    --parts;
    for (size_t i = best + 1; i <= parts; ++i) start[i] = start[i + 1];
    for (size_t i = best + 1; i < parts; ++i) pair[i] = pair[i + 1];
    pair[best] = joined(best);
    if (best > 0) pair[best - 1] = joined(best - 1);
  }
  for (size_t i = 0; i < parts; ++i) {
    out.push_back(ranks.find(piece.substr(start[i], start[i + 1] - start[i])));
  }
}

// A linked list of parts, named by their first byte, and a heap of joinable pairs. Entries of the
// heap go stale when one of their parts changes; they are told by a rank that is no longer the
// pair's.
class HeapMerge {
 public:
  HeapMerge(const RankTable& ranks, std::string_view piece)
      : ranks_(ranks), piece_(piece), parts_(piece.size()) {
    const auto n = static_cast<uint32_t>(piece.size());
    for (uint32_t i = 0; i < n; ++i) parts_[i] = Part{i - 1, i + 1, kNoRank};
    for (uint32_t i = 0; i < n; ++i) update(i);
  }

  void run(std::vector<TokenId>& out) {
    while (!heap_.empty()) {
      const uint64_t top = heap_.top();
      heap_.pop();
      const auto at = static_cast<uint32_t>(top);
      if (parts_[at].pair_rank == static_cast<uint32_t>(top >> 32)) merge(at);
    }
    const auto n = static_cast<uint32_t>(piece_.size());
    for (uint32_t at = 0; at < n; at = parts_[at].next) {
      out.push_back(ranks_.find(piece_.substr(at, parts_[at].next - at)));
    }
  }

 private:
  struct Part {
    uint32_t previous;   // of the first part: not used
    uint32_t next;       // end of this part; piece size for the last
    uint32_t pair_rank;  // of this part and the next joined; kNoRank for a part merged away
  };

  void update(uint32_t at) {
    const uint32_t next = parts_[at].next;
    parts_[at].pair_rank = next == piece_.size()
                               ? kNoRank
                               : rank_of(ranks_, piece_.substr(at, parts_[next].next - at));
    if (parts_[at].pair_rank != kNoRank) {
      heap_.push(static_cast<uint64_t>(parts_[at].pair_rank) << 32 | at);
    }
  }

  void merge(uint32_t at) {
    const uint32_t gone = parts_[at].next;
    parts_[at].next = parts_[gone].next;
    parts_[gone].pair_rank = kNoRank;
    if (parts_[at].next < piece_.size()) parts_[parts_[at].next].previous = at;
    update(at);
    if (at > 0) update(parts_[at].previous);
  }

  const RankTable& ranks_;
  std::string_view piece_;
  std::vector<Part> parts_;  // [bytes of piece]
  // rank << 32 | first byte: the lowest rank first, the leftmost on ties.
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> heap_;
};

}  // namespace

void append_bpe(const RankTable& ranks, std::string_view piece, std::vector<TokenId>& out) {
  if (const TokenId whole = ranks.find(piece); whole != RankTable::kNone) {
    out.push_back(whole);
  } else if (piece.size() <= kScanBytesMax) {
    merge_by_scan(ranks, piece, out);
  } else {
    HeapMerge(ranks, piece).run(out);
  }
}

}  // namespace sluice
