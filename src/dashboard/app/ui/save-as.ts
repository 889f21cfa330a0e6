/** Lets the browser save a file that was made in this page. */
export function saveAs(name: string, type: string, parts: readonly Blob[]): void {
  const url = URL.createObjectURL(new Blob([...parts], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // Releases the file after a minute, because the browser needs it until the download has started.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
