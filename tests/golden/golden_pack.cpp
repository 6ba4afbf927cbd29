#include "golden/golden_pack.h"

#include <string>

#include "base/thread_pool.h"
#include "format/fingerprint.h"
#include "format/pack_layout.h"
#include "store/pack_writer.h"

namespace sluice {

Result<std::unique_ptr<GoldenPack>> GoldenPack::make(const Checkpoint& checkpoint, int threads) {
  auto pack = std::unique_ptr<GoldenPack>(new GoldenPack);
  TRY(const std::string identity, fingerprint(checkpoint));
  const PackLayout layout = plan_pack(checkpoint, identity);
  ThreadPool pool(threads);
  TRY(const PackSummary summary,
      write_pack(checkpoint, layout, {.directory = pack->directory_.path(), .pool = &pool}));
  CHECK(!summary.was_complete);
  TRY(pack->file_, PackFile::open(pack->directory_.path() / kPackName, layout, Direct::kAuto));
  return pack;
}

}  // namespace sluice
