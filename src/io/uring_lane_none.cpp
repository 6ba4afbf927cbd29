// Systems without io_uring.
#include "io/read_lane.h"

namespace sluice {

bool uring_works() { return false; }

std::unique_ptr<ReadLane> make_uring_lane(ReadBoard&, LaneKey, int32_t) { return nullptr; }

}  // namespace sluice
