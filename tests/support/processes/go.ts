/**
 * Settings of the Go compiler. The first program compiles the standard library, which takes half the time without
 * optimization, inlining and cgo. All programs use the same flags, because other flags compile the library again.
 */
export const GO_ENV: Readonly<Record<string, string>> = {
  CGO_ENABLED: "0",
  GOFLAGS: [process.env["GOFLAGS"] ?? "", "'-gcflags=all=-N -l'"].join(" ").trim(),
};
