// The `openai` npm client, as its users have it, against `sluice serve` with a small model.
//
//   node client.mjs NODE_MODULES SLUICE MODEL_DIR
//
// Every test is one promise of the API, seen through the client. Exit status 1 when one is broken.
import './chat_checks.mjs';
import './stream_checks.mjs';
import './tool_checks.mjs';
import './sampling_checks.mjs';
import './completion_checks.mjs';
import './error_checks.mjs';
import './busy_checks.mjs';
import './last_checks.mjs';
