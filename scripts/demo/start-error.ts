/** The reason for a failed start and its remedy, in a text for the user. */
export class StartError extends Error {
  constructor(...lines: string[]) {
    super(lines.join("\n"));
    this.name = "StartError";
  }
}
