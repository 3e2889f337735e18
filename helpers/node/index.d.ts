/** What may be said of how recordings are tried. */
export interface Options {
  /** Further arguments of `tapedeck test`, as in `["--tree", "now", "--strict"]`. */
  args?: string[];
}

/** The `test` of a runner: node:test's, vitest's. */
export type Register = (name: string, options: { timeout: number }, run: (context: any) => Promise<void>) => unknown;

/**
 * Registers a test for each recording and script at and below path.
 * Throws where tapedeck is missing or the path holds nothing.
 */
export function recordings(test: Register, path: string, options?: Options): void;
