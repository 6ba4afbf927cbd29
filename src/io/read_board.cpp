#include "io/read_board.h"

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

// How long reads with copies elsewhere stay away from a drive that has failed one of them, seconds.
constexpr double kShunS = 1.0;

uint64_t hull_begin(const ReadRange& range) { return round_down(range.offset, kPageBytes); }
uint64_t range_end(const ReadRange& range) { return range.offset + range.bytes; }
uint64_t hull_bytes(const ReadRange& range) {
  return round_up(range_end(range), kPageBytes) - hull_begin(range);
}

// Equal parts, so that no small one trails the others.
uint64_t equal_part_bytes(uint64_t bytes, uint64_t part_bytes_max) {
  const uint64_t n_parts = (bytes + part_bytes_max - 1) / part_bytes_max;
  return round_up((bytes + n_parts - 1) / n_parts, kPageBytes);
}

}  // namespace

bool ReadLine::empty() const {
  return std::all_of(classes.begin(), classes.end(),
                     [](const Class& line) { return line.first == nullptr; });
}

ReadBoard::ReadBoard(int32_t depth, uint64_t part_bytes) : depth_(depth), part_bytes_(part_bytes) {
  CHECK(depth > 0 && part_bytes > 0 && part_bytes % kPageBytes == 0);
}

ReadBoard::~ReadBoard() { CHECK(under_way_ == 0 && lanes_.empty()); }

void ReadBoard::submit(Read& read, const ReadRange& range, ReadClass urgency) {
  CHECK(read.phase_ == Read::Phase::kIdle && range.file != nullptr);
  read.error_.reset();
  if (Status status = range.file->check_range(range.offset, range.bytes); !status.ok()) {
    read.error_ = status.error();
  }
  if (read.error_ || range.bytes == 0) {
    const Lock lock(mutex_);
    read.line_ = nullptr;
    read.phase_ = Read::Phase::kDone;
    return;
  }
  const uint64_t bytes = hull_bytes(range);
  CHECK(reinterpret_cast<uintptr_t>(range.slot.data()) % kPageBytes == 0);
  CHECK(range.slot.size() >= bytes);
  read.range_ = range;
  read.class_ = urgency;
  read.part_bytes_ = equal_part_bytes(bytes, part_bytes_);
  read.issued_bytes_ = 0;
  read.parts_in_flight_ = 0;

  const Lock lock(mutex_);
  settle();
  read.phase_ = Read::Phase::kUnderWay;
  read.ticket_ = tickets_++;
  read.line_ = &line_of(*range.file);
  ++under_way_;
  insert(read);
  wake(*read.line_);
}

void ReadBoard::raise(Read& read, ReadClass urgency) {
  const Lock lock(mutex_);
  raise_locked(read, urgency);
}

void ReadBoard::raise_locked(Read& read, ReadClass urgency) {
  if (read.phase_ != Read::Phase::kUnderWay || read.class_ <= urgency) return;
  ReadLine* const line = read.line_;
  if (line != nullptr) unlink(read);
  read.class_ = urgency;
  if (line == nullptr) return;
  read.line_ = line;
  insert(read);
}

Status ReadBoard::wait(Read& read) {
  const Lock lock(mutex_);
  CHECK(read.phase_ != Read::Phase::kIdle);
  raise_locked(read, ReadClass::kDemand);
  while (read.phase_ != Read::Phase::kDone) done_.wait(mutex_);
  read.phase_ = Read::Phase::kIdle;
  if (read.error_) return *std::exchange(read.error_, std::nullopt);
  return Ok{};
}

size_t ReadBoard::wait_any(std::span<Read* const> reads) {
  CHECK(!reads.empty());
  const Lock lock(mutex_);
  for (;;) {
    for (size_t i = 0; i < reads.size(); ++i) {
      CHECK(reads[i]->phase_ != Read::Phase::kIdle);
      if (reads[i]->phase_ == Read::Phase::kDone) return i;
    }
    done_.wait(mutex_);
  }
}

void ReadBoard::cancel(Read& read) {
  const Lock lock(mutex_);
  if (read.phase_ == Read::Phase::kUnderWay && read.line_ != nullptr) {
    settle();
    unlink(read);
    if (read.parts_in_flight_ == 0) end(read);
  }
  while (read.phase_ == Read::Phase::kUnderWay) done_.wait(mutex_);
  read.phase_ = Read::Phase::kIdle;
  read.error_.reset();
}

void ReadBoard::set_owed(bool owed) {
  const Lock lock(mutex_);
  settle();
  owed_ = owed;
}

ReadQueue::Stats ReadBoard::stats() {
  const Lock lock(mutex_);
  settle();
  return stats_;
}

LaneKey ReadBoard::key_of(const File& file) {
  return {.drive = file.drive(), .has_fd = file.page_fd() >= 0};
}

bool ReadBoard::has_lane(LaneKey key) {
  const Lock lock(mutex_);
  return find_lane(key) != nullptr;
}

std::unique_ptr<ReadLane> ReadBoard::add_lane(std::unique_ptr<ReadLane> lane) {
  const Lock lock(mutex_);
  if (find_lane(lane->key_) != nullptr) {
    tell_to_stop(*lane);
    return lane;
  }
  lanes_.push_back(std::move(lane));
  return nullptr;
}

void ReadBoard::stop_lanes() {
  std::vector<std::unique_ptr<ReadLane>> lanes;
  {
    const Lock lock(mutex_);
    CHECK(under_way_ == 0);
    lines_.clear();
    lanes.swap(lanes_);
    for (const auto& lane : lanes) tell_to_stop(*lane);
  }
  lanes.clear();  // joins their threads
}

void ReadBoard::tell_to_stop(ReadLane& lane) {
  lane.stopping_ = true;
  lane.lines_.clear();
  lane.work_.notify_all();
  lane.wake();
}

std::optional<ReadPart> ReadBoard::take(ReadLane& lane) {
  const Lock lock(mutex_);
  std::optional<ReadPart> part = take_locked(lane);
  lane.sleepers_ = part ? 0 : 1;
  return part;
}

std::optional<ReadPart> ReadBoard::take_or_sleep(ReadLane& lane) {
  const Lock lock(mutex_);
  for (;;) {
    if (lane.stopping_) return std::nullopt;
    if (std::optional<ReadPart> part = take_locked(lane)) {
      // One is woken for a read; it wakes the next while parts are left.
      if (lane.sleepers_ > 0 && next_read(lane) != nullptr) lane.wake();
      return part;
    }
    ++lane.sleepers_;
    lane.work_.wait(mutex_);
    --lane.sleepers_;
  }
}

bool ReadBoard::stopping(ReadLane& lane) {
  const Lock lock(mutex_);
  return lane.stopping_;
}

Status ReadBoard::read_pages(ReadLane& lane, const ReadPart& part, std::optional<Error> tried) {
  if (!tried) {
    Status first = part.file->read_pages(part.begin, part.needed_bytes, part.hull);
    if (first.ok()) return first;
    tried = first.error();
  }
  const File& file = *part.read->range_.file;
  const bool has_others = file.n_copies() > 1;
  for (size_t i = 0; i < file.n_copies(); ++i) {
    const File& copy = file.copy(i);
    if (has_others && &copy == part.file) continue;
    {
      const Lock lock(mutex_);
      ++stats_.retries;
      count_part(part);
      if (has_others) lane.shunned_until_s_ = now_s() + kShunS;
    }
    Status again = copy.read_pages(part.begin, part.needed_bytes, part.hull);
    if (again.ok()) return again;
    if (!has_others) tried = again.error();
  }
  return *tried;
}

void ReadBoard::finish(ReadLane& lane, const ReadPart& part, Status status) {
  Read& read = *part.read;
  const Lock lock(mutex_);
  settle();
  --lane.in_flight_;
  --read.parts_in_flight_;
  if (!status.ok()) {
    if (!read.error_) read.error_ = status.error();
    if (read.line_ != nullptr) unlink(read);  // the rest is of no use
  }
  if (read.line_ == nullptr && read.parts_in_flight_ == 0) end(read);
}

void ReadBoard::add_memory(std::span<std::byte> memory) {
  const Lock lock(mutex_);
  const auto hole = std::find_if(memory_.begin(), memory_.end(),
                                 [](std::span<std::byte> known) { return known.empty(); });
  if (hole == memory_.end()) {
    memory_.push_back(memory);
  } else {
    *hole = memory;
  }
  ++memory_version_;
}

void ReadBoard::forget_memory(std::span<std::byte> memory) {
  const Lock lock(mutex_);
  for (std::span<std::byte>& known : memory_) {
    if (known.data() == memory.data() && known.size() == memory.size()) known = {};
  }
  const uint64_t version = ++memory_version_;
  for (const auto& lane : lanes_) {
    if (lane->knows_memory_) lane->wake();
  }
  for (size_t i = 0; i < lanes_.size(); ++i) {  // more may come while this waits
    const ReadLane& lane = *lanes_[i];
    while (lane.knows_memory_ && lane.memory_version_ < version) done_.wait(mutex_);
  }
}

std::optional<uint64_t> ReadBoard::memory_changed(ReadLane& lane,
                                                  std::vector<std::span<std::byte>>& memory) {
  if (lane.memory_version_ == memory_version_) return std::nullopt;
  const Lock lock(mutex_);
  memory = memory_;
  return memory_version_;
}

void ReadBoard::memory_known(ReadLane& lane, uint64_t version) {
  const Lock lock(mutex_);
  lane.memory_version_ = version;
  done_.notify_all();
}

ReadLine& ReadBoard::line_of(const File& file) {
  const auto serves = [&](const ReadLine& line) REQUIRES(mutex_) {
    if (line.lanes.size() != file.n_copies()) return false;
    for (size_t i = 0; i < line.lanes.size(); ++i) {
      if (line.lanes[i]->key_ != key_of(file.copy(i))) return false;
    }
    return true;
  };
  for (const auto& line : lines_) {
    if (serves(*line)) return *line;
  }
  auto line = std::make_unique<ReadLine>();
  for (size_t i = 0; i < file.n_copies(); ++i) {
    ReadLane* const lane = find_lane(key_of(file.copy(i)));
    CHECK(lane != nullptr);
    line->lanes.push_back(lane);
    if (std::find(lane->lines_.begin(), lane->lines_.end(), line.get()) == lane->lines_.end()) {
      lane->lines_.push_back(line.get());
    }
  }
  lines_.push_back(std::move(line));
  return *lines_.back();
}

ReadLane* ReadBoard::find_lane(LaneKey key) {
  for (const auto& lane : lanes_) {
    if (lane->key_ == key) return lane.get();
  }
  return nullptr;
}

// Behind all reads of its class that were submitted before.
void ReadBoard::insert(Read& read) {
  ReadLine::Class& line = read.line_->classes[static_cast<size_t>(read.class_)];
  Read* before = line.last;
  while (before != nullptr && before->ticket_ > read.ticket_) before = before->previous_;
  read.previous_ = before;
  read.next_ = before == nullptr ? line.first : before->next_;
  (before == nullptr ? line.first : before->next_) = &read;
  (read.next_ == nullptr ? line.last : read.next_->previous_) = &read;
}

void ReadBoard::unlink(Read& read) {
  ReadLine::Class& line = read.line_->classes[static_cast<size_t>(read.class_)];
  (read.previous_ == nullptr ? line.first : read.previous_->next_) = read.next_;
  (read.next_ == nullptr ? line.last : read.next_->previous_) = read.previous_;
  read.next_ = read.previous_ = nullptr;
  read.line_ = nullptr;
}

void ReadBoard::wake(ReadLine& line) {
  for (ReadLane* const lane : line.lanes) {
    if (lane->sleepers_ > 0 && may_serve(*lane, line)) lane->wake();
  }
}

// The most urgent read that the lane may serve, of those the first submitted.
Read* ReadBoard::next_read(const ReadLane& lane) {
  for (size_t urgency = 0; urgency < kReadClasses; ++urgency) {
    Read* oldest = nullptr;
    for (const ReadLine* const line : lane.lines_) {
      Read* const first = line->classes[urgency].first;
      if (first == nullptr || !may_serve(lane, *line)) continue;
      if (oldest == nullptr || first->ticket_ < oldest->ticket_) oldest = first;
    }
    if (oldest != nullptr) return oldest;
  }
  return nullptr;
}

// Not for a while after the drive has failed what another one could answer.
bool ReadBoard::may_serve(const ReadLane& lane, const ReadLine& line) {
  if (line.lanes.size() == 1) return true;
  const double now = now_s();
  const auto shunned = [now](const ReadLane* any) { return any->shunned_until_s_ > now; };
  return !shunned(&lane) || std::all_of(line.lanes.begin(), line.lanes.end(), shunned);
}

std::optional<ReadPart> ReadBoard::take_locked(ReadLane& lane) {
  Read* const read = next_read(lane);
  if (read == nullptr) return std::nullopt;
  settle();
  const ReadRange& range = read->range_;
  const uint64_t begin = hull_begin(range) + read->issued_bytes_;
  const uint64_t bytes = std::min(read->part_bytes_, hull_bytes(range) - read->issued_bytes_);
  const auto& lanes = read->line_->lanes;
  const auto copy = std::find(lanes.begin(), lanes.end(), &lane) - lanes.begin();
  const ReadPart part{.read = read,
                      .file = &range.file->copy(static_cast<size_t>(copy)),
                      .begin = begin,
                      .needed_bytes = std::min(begin + bytes, range_end(range)) - begin,
                      .hull = range.slot.subspan(read->issued_bytes_, bytes)};
  read->issued_bytes_ += bytes;
  ++read->parts_in_flight_;
  ++lane.in_flight_;
  count_part(part);
  if (read->issued_bytes_ == hull_bytes(range)) unlink(*read);
  return part;
}

void ReadBoard::count_part(const ReadPart& part) {
  ++stats_.parts;
  stats_.bytes_read += part.hull.size();
  stats_.class_bytes[static_cast<size_t>(part.read->class_)] += part.hull.size();
}

double ReadBoard::now_s() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
}

// Accounts for the time since the last change. Called before every change of what is under way.
void ReadBoard::settle() {
  const double now = now_s();
  const double passed = now - std::exchange(settled_s_, now);
  if (under_way_ == 0 && !owed_) return;
  stats_.owed_s += passed;
  if (is_short()) stats_.short_s += passed;
}

bool ReadBoard::is_short() {
  if (lanes_.empty()) return true;
  return std::any_of(lanes_.begin(), lanes_.end(), [&](const auto& lane) REQUIRES(mutex_) {
    return lane->in_flight_ < depth_ && (owed_ || next_read(*lane) != nullptr);
  });
}

void ReadBoard::end(Read& read) {
  --under_way_;
  read.phase_ = Read::Phase::kDone;
  done_.notify_all();
}

}  // namespace sluice
