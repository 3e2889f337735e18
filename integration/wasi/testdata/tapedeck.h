/* tapedeck.h: what a module may ask of its testbench, in C. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TAPEDECK(name, function) \
  __attribute__((import_module("tapedeck"), import_name(name))) \
  int32_t function(const char *arguments, uint32_t length)

TAPEDECK("llm.complete", tapedeck_llm_complete);
TAPEDECK("process.run", tapedeck_process_run);
TAPEDECK("mcp.call", tapedeck_mcp_call);
TAPEDECK("http.get", tapedeck_http_get);
TAPEDECK("http.post", tapedeck_http_post);
TAPEDECK("fs.diff", tapedeck_fs_diff);
TAPEDECK("log", tapedeck_log);

__attribute__((import_module("tapedeck"), import_name("take")))
void tapedeck_take(char *address);

/* Calls one of them. arguments is a JSON object. The answer is JSON, or the text of an error where *failed is set; free it. */
static char *tapedeck_call(int32_t (*function)(const char *, uint32_t), const char *arguments, int *failed) {
  int32_t n = function(arguments, strlen(arguments));
  if ((*failed = n < 0)) n = -n;
  char *answer = malloc((size_t)n + 1);
  if (!answer) abort();
  tapedeck_take(answer);
  answer[n] = 0;
  return answer;
}
