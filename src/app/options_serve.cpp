// The options of sluice serve.
#include <limits>

#include "app/option_values.h"
#include "app/options_parser.h"

namespace sluice {

void add_serve(Parser& parser, ServeOptions& serve) {
  add_engine(parser, serve.engine);
  parser.text("--host", serve.host, "Address to listen on (default: 127.0.0.1)");
  parser.number<uint16_t>("--port", serve.port, 0, std::numeric_limits<uint16_t>::max(),
                          "Port to listen on; 0 takes a free one (default: 8000)");
  parser.values("--api-key", "Key that clients must send; may be given several times",
                [&serve](const std::string& text) -> Status {
                  serve.api_keys.push_back(text);
                  return Ok{};
                });
  parser.text("--api-key-file", serve.api_key_file, "File of such keys, one a line");
  parser.flag("--no-auth", serve.no_auth, "Let everyone who reaches the address use it");
  parser.text("--model-name", serve.model_name, "Name for clients (default: the directory's)");
  parser.text("--cors-origin", serve.cors_origin,
              "Web pages of this origin may use the server, e.g. https://example.org (default: none)");
  parser.number<int64_t>("--parallel", serve.engine.sequences, 1, 1024,
                         "Requests computed at once (default: by memory)");
  parser.number<int64_t>("--queue", serve.queue, 0, kCountMax,
                         "Requests that may wait for a place (default: 64)");
  parser.number<double>("--max-pass-time", serve.pass_s_max, 0.0, kSamplingMax,
                        "Seconds that prompts may make other replies wait for their next token "
                        "(default: 0, as long again as without them)");
  parser.number<double>("--drain-timeout", serve.drain_timeout_s, 0.0, kSamplingMax,
                        "Seconds that running requests get after SIGTERM (default: 300)");
  parser.number<int64_t>("--max-connections", serve.max_connections, 1, kCountMax,
                         "HTTP connections at once (default: 4096)");
  parser.flag("--quiet", serve.quiet, "No line on standard error for each request");
  parser.flag("--log-prompts", serve.log_prompts, "Write the requests' bodies on standard error");
  parser.config_file("--config", "File of these options, one a line: port = 8000");
}

}  // namespace sluice
