/** Why a start was refused, in words for the person who started it: what is wrong and what to do next. */
export class StartError extends Error {
  constructor(...lines: string[]) {
    super(lines.join("\n"));
    this.name = "StartError";
  }
}
