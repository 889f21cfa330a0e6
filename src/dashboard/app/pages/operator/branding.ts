/** What a form holds while it is filled in; empty means absent. */
export interface Branding {
  readonly primaryColor: string;
  readonly logoUrl: string;
}

export const NO_BRANDING: Branding = { primaryColor: "", logoUrl: "" };

export function brandingBody({ primaryColor, logoUrl }: Branding) {
  return {
    ...(primaryColor.trim() !== "" && { primary_color: primaryColor.trim() }),
    ...(logoUrl.trim() !== "" && { logo_url: logoUrl.trim() }),
  };
}

/** One store per line; empty lines and repeated spaces are no stores. */
export function storeNames(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim().replaceAll(/\s+/g, " "))
    .filter((line) => line !== "");
}
