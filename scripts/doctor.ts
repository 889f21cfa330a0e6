// `bun run doctor`: looks at everything that the service stands on, and says what to do about what is wrong.
// Its own imports are built-ins only: on a fresh clone nothing is installed yet.
import { requireInstalled } from "./install/installed.ts";

requireInstalled();
const { main } = await import("./doctor/doctor.ts");
process.exitCode = await main(process.argv.slice(2));
