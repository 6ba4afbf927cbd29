// The scheduler's thread: who takes part in the next pass, the pass, and what came of it.
#include <algorithm>
#include <utility>

#include "engine/scheduler.h"
#include "model/workspace.h"

namespace sluice {
namespace {

// Prompt rows that a pass may take while others decode, whatever the clock says: a tile costs
// hardly more than a row.
constexpr int64_t kPromptRowsMin = kTileRows;

int64_t pages_of(int64_t positions) { return (positions + kPagePositions - 1) / kPagePositions; }

}  // namespace

void Scheduler::run() {
  while (wait_for_work()) {
    drop_ended();
    admit();
    if (!active_.empty()) run_pass();
  }
  // Those that are left get their end, and the destructor a scheduler without work.
  for (const auto& request : active_) cancel(*request->stream());
  while (true) {
    std::shared_ptr<RequestStream> stream;
    {
      Lock lock(mutex_);
      if (waiting_.empty()) break;
      stream = waiting_.front()->stream();
    }
    cancel(*stream);
  }
  drop_ended();
}

bool Scheduler::wait_for_work() {
  Lock lock(mutex_);
  while (!stopping_ && waiting_.empty() && active_.empty()) changed_.wait(mutex_);
  return !stopping_;
}

// Those that were cancelled, and those that finished in the last pass.
void Scheduler::drop_ended() {
  const auto n_ended = std::erase_if(active_, [this](const auto& request) {
    if (!request->stream()->ended()) return false;
    free_states_.push_back(&request->give_state());
    return true;
  });
  if (n_ended == 0) return;
  {
    Lock lock(mutex_);
    publish_running();
  }
  changed_.notify_all();
}

void Scheduler::admit() {
  bool changed = false;
  while (!free_states_.empty()) {
    std::unique_ptr<ActiveRequest> request;
    {
      Lock lock(mutex_);
      if (waiting_.empty() || !fits(*waiting_.front())) break;
      request = std::move(waiting_.front());
      waiting_.pop_front();
      // It counts as running before anyone can see that it left the queue.
      running_.push_back({request->id(), request->index(), request->max_new(), request->submitted(),
                          request->stream()});
    }
    changed = true;
    if (request->needs_no_pass()) {
      end(*request, FinishReason::kLength, std::nullopt);
    } else if (!request->stream()->ended()) {
      start(std::move(request));
    }
  }
  if (!changed) return;
  {
    Lock lock(mutex_);
    publish_running();
  }
  announce_queue();
  changed_.notify_all();
}

// Whether the free pages hold what it has and its next token.
bool Scheduler::fits(const ActiveRequest& request) const {
  int64_t free = pages_of(loaded_.plan().pool_positions);
  for (const auto& other : active_) free -= pages_of(other->n_tokens());
  return active_.empty() || pages_of(request.n_tokens() + 1) <= free;
}

void Scheduler::start(std::unique_ptr<ActiveRequest> request) {
  request->take_state(*free_states_.back(), loaded_.config().vocab_size);
  free_states_.pop_back();
  request->stream()->set_progress(request->progress());
  active_.push_back(std::move(request));
}

void Scheduler::publish_running() {
  running_.clear();
  for (const auto& request : active_) {
    running_.push_back({request->id(), request->index(), request->max_new(), request->submitted(),
                        request->stream()});
  }
}

void Scheduler::run_pass() {
  const std::vector<Share> shares = plan_pass();
  if (!shares.empty()) run_shares(shares);
  {
    Lock lock(mutex_);
    for (Running& running : running_) running.pass_rows = 0;
  }
}

std::vector<Scheduler::Share> Scheduler::plan_pass() {
  std::vector<RowDemand> demands;
  int64_t n_decoding = 0;
  for (const auto& request : active_) {
    demands.push_back(request->demand());
    n_decoding += demands.back().decoding ? 1 : 0;
  }
  RowLimits limits{.rows_max = loaded_.model().rows_max(),
                   .rows_with_decoding = kPromptRowsMin,
                   .logit_rows_max = loaded_.plan().logit_rows};
  if (n_decoding > 0) {
    Lock lock(mutex_);
    const double pass_s =
        options_.pass_s_max > 0.0 ? options_.pass_s_max : 2.0 * times_.predict_s(n_decoding);
    limits.rows_with_decoding =
        std::max(kPromptRowsMin, times_.rows_within(pass_s, n_decoding) - n_decoding);
  }
  const std::vector<int64_t> rows = share_rows(demands, limits);
  std::vector<Share> shares;
  for (size_t i = 0; i < rows.size(); ++i) {
    // Reserving may send the youngest back to the queue, this one too.
    if (i >= active_.size()) break;
    if (rows[i] == 0 || !reserve(*active_[i], rows[i])) continue;
    shares.push_back({active_[i].get(), rows[i]});
  }
  return shares;
}

// Pages for the rows, taken from the youngest if need be; false when that is the request itself.
bool Scheduler::reserve(ActiveRequest& request, int64_t rows) {
  while (!request.state().reserve(rows).ok()) {
    // Alone it has the whole pool, which holds a context.
    CHECK(active_.size() > 1);
    const bool itself = active_.back().get() == &request;
    preempt();
    if (itself) return false;
  }
  return true;
}

void Scheduler::preempt() {
  std::unique_ptr<ActiveRequest> youngest = std::move(active_.back());
  active_.pop_back();
  free_states_.push_back(&youngest->give_state());
  {
    Lock lock(mutex_);
    waiting_.push_front(std::move(youngest));
    ++stats_.preempted;
    publish_running();
  }
  announce_queue();
}

// One pass, or after an error of several requests two with half of them each.
void Scheduler::run_shares(std::span<const Share> shares) {
  batch_.sequences.clear();
  std::vector<Share> taken;
  for (const Share& share : shares) {
    if (share.request->stream()->ended()) continue;
    taken.push_back(share);
    share.request->fill(share.rows, batch_.sequences.emplace_back());
  }
  if (taken.empty()) return;
  const int64_t n_rows = batch_.n_rows();
  const int64_t vocab_size = loaded_.config().vocab_size;
  begin_pass(taken);
  const Clock::time_point start = Clock::now();
  const Status status = loaded_.model().forward(
      batch_, {logits_.data(), batch_.n_logits(), vocab_size}, &stop_pass_, nullptr);
  end_pass(n_rows, std::chrono::duration<double>(Clock::now() - start).count(), status.ok());
  if (status.ok()) {
    take_in(taken);
  } else if (status.error().code == Code::kCancelled) {
    Lock lock(mutex_);
    last_pass_stopped_ = true;
  } else if (taken.size() == 1) {
    end(*taken.front().request, FinishReason::kError, status.error());
  } else {
    const std::span<const Share> all(taken);
    run_shares(all.first(all.size() / 2));
    run_shares(all.subspan(all.size() / 2));
  }
}

void Scheduler::begin_pass(std::span<const Share> shares) {
  Lock lock(mutex_);
  pass_started_ = Clock::now();
  for (Running& running : running_) {
    running.pass_rows = 0;
    for (const Share& share : shares) {
      if (share.request->stream() == running.stream) running.pass_rows = share.rows;
    }
  }
  stop_pass_ = should_stop_pass();
}

void Scheduler::end_pass(int64_t rows, double seconds, bool ok) {
  const ExpertStore::Stats experts = loaded_.model().expert_stats();
  Lock lock(mutex_);
  stats_.bytes_read = loaded_.model().bytes_read();
  stats_.expert_bytes_read = experts.bytes_read;
  stats_.expert_hits = experts.hits;
  stats_.expert_misses = experts.misses;
  if (!ok) return;
  times_.add(rows, seconds);
  ++stats_.passes;
  stats_.pass_rows += static_cast<uint64_t>(rows);
  stats_.pass_s.observe(seconds);
  last_pass_stopped_ = false;
}

// Draws from the logits of a pass that succeeded.
void Scheduler::take_in(std::span<const Share> shares) {
  const int64_t vocab_size = loaded_.config().vocab_size;
  int64_t logit_row = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    ActiveRequest& request = *shares[i].request;
    const SequenceRows& rows = batch_.sequences[i];
    const Rows logits{logits_.data() + logit_row * vocab_size, rows.n_logits, vocab_size};
    logit_row += rows.n_logits;
    if (request.stream()->ended()) continue;  // cancelled meanwhile: its state goes with it
    const int64_t new_before = request.n_new();
    const Status drawn = request.advance(rows, logits, loaded_.model().compute());
    const bool drew = request.n_new() > new_before;
    {
      Lock lock(mutex_);
      if (rows.fate == RowFate::kKeep) {
        stats_.prompt_tokens += static_cast<uint64_t>(rows.tokens.size());
      }
      stats_.new_tokens += drew ? 1 : 0;
      if (drew) (new_before == 0 ? stats_.ttft_s : stats_.token_s).observe(request.token_gap_s());
    }
    if (!drawn.ok()) {
      end(request, FinishReason::kError, drawn.error());
    } else if (request.finished()) {
      end(request, *request.finished(), std::nullopt);
    } else {
      request.stream()->set_progress(request.progress());
    }
  }
}

void Scheduler::end(ActiveRequest& request, FinishReason finish, std::optional<Error> error) {
  request.stream()->set_progress(request.progress());
  const ReplyEnd reply_end = request.end(finish, std::move(error));
  {
    // Counted first: who sees the end sees it counted.
    Lock lock(mutex_);
    if (request.stream()->ended()) return;
    count_end(reply_end.finish, reply_end.usage);
  }
  request.stream()->finish(reply_end);
}

}  // namespace sluice
