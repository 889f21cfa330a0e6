/** Whether tests take the numbers of the nightly workflow, which are too slow for each commit: `THOROUGH=1`. */
export const isThorough = process.env["THOROUGH"] === "1";
