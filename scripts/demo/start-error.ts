/** The reason why a start failed, with a remedy, written for the user. */
export class StartError extends Error {
  constructor(...lines: string[]) {
    super(lines.join("\n"));
    this.name = "StartError";
  }
}
