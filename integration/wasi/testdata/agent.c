#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include "tapedeck.h"

int main(int argc, char **argv) {
  int failed;
  char *answer = tapedeck_call(tapedeck_llm_complete,
      "{\"messages\":[{\"role\":\"user\",\"content\":\"What changed?\"}]}", &failed);
  printf("%s\n", answer);
  if (failed) return 1;
  free(answer);

  answer = tapedeck_call(tapedeck_process_run, "{\"program\":\"git\",\"args\":[\"status\",\"--short\"]}", &failed);
  printf("%s\n", answer);
  if (failed) return 1;
  free(answer);

  time_t before = time(NULL);
  sleep(24 * 60 * 60);
  unsigned char random[4];
  getentropy(random, sizeof random);
  printf("%s, %s: %ld s later, %02x%02x\n", argv[argc - 1], getenv("MODE"), (long)(time(NULL) - before), random[0], random[1]);

  FILE *report = fopen("report.md", "w");
  if (!report || fputs("# Done\n", report) < 0 || fclose(report) != 0) {
    perror("report.md");
    return 1;
  }
  return 0;
}
