/** Exit statuses; those above 1 are of sysexits.h. */
export const EXIT = { ok: 0, failed: 1, usage: 64, unavailable: 69, signedOut: 77 } as const;

/** Ends the command with a sentence for people and a status for scripts. */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly status: number;

  constructor(status: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

export function usage(message: string): Failure {
  return new Failure(EXIT.usage, message);
}
