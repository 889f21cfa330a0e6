// `bun run doctor`: checks everything that the service depends on and suggests remedies. It statically imports only
// built-ins, because a fresh clone has no dependencies installed.
import { requireInstalled } from "./install/installed.ts";

requireInstalled();
const { main } = await import("./doctor/doctor.ts");
process.exitCode = await main(process.argv.slice(2));
