/** Whether tests use the large numbers of the nightly workflow (`THOROUGH=1`), which are too slow for each commit. */
export const isThorough = process.env["THOROUGH"] === "1";
