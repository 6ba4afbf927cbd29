// sluice convert: makes the int8 pack of a checkpoint in the work directory, goes on with one that
// was interrupted, checks one that is there.
#include <cstdio>
#include <string>
#include <utility>

#include "app/commands.h"
#include "app/interrupt.h"
#include "app/output.h"
#include "app/progress.h"
#include "base/size.h"
#include "base/thread_pool.h"
#include "engine/cores.h"
#include "engine/work_directory.h"
#include "format/fingerprint.h"
#include "format/pack_layout.h"
#include "store/pack_writer.h"

namespace sluice {

Result<int> convert_command(const ConvertOptions& options) {
  const EngineOptions& engine = options.engine;
  TRY(const Checkpoint checkpoint, Checkpoint::open(engine.model, engine.direct));
  TRY(const auto directory, work_directory(checkpoint, engine));
  TRY(std::string digits, fingerprint(checkpoint));
  const PackLayout layout = plan_pack(checkpoint, std::move(digits));
  const std::string path = (directory / kPackName).string();
  TRY_OK(write_out(path + ": int8 (quantised) spine, " + std::to_string(layout.file_bytes) +
                   " bytes (" + format_size(layout.file_bytes) + ")\n"));

  install_interrupt();
  ThreadPool pool(engine.threads ? engine.threads : physical_cores());
  ProgressLine line;
  PackJob job{.directory = directory, .pool = &pool, .stop = &interrupt_flag()};
  job.on_progress = [&line](const PackProgress& at) {
    line.show(at.phase == PackPhase::kCheck ? "checking" : "writing", at.done_bytes,
              at.total_bytes);
  };
  job.on_note = [&line](const std::string& sentence) {
    line.end_line();
    print_note(sentence);
  };
  const auto summary = write_pack(checkpoint, layout, job);
  line.end_line();
  if (!summary.ok() && summary.error().code == Code::kCancelled) {
    print_note(summary.error().what);
    return kExitInterrupted;
  }
  TRY_OK(summary);
  TRY_OK(write_out(summary.value().was_complete ? "it is complete already\n" : "done\n"));
  return kExitDone;
}

}  // namespace sluice
