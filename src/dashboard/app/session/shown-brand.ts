import type { Session } from "./identity.ts";

/** Appearance of the service: name, logo and colour of the platform or of a white label. */
export interface ShownBrand {
  readonly name: string;
  readonly color: string;
  readonly logoUrl: string | null;
}

export function brandOf({
  white_label: label,
  theme,
}: Pick<Session, "white_label" | "theme">): ShownBrand {
  const name = (label.enabled ? label.brand_name : null) ?? "ReviewRelay";
  return { name, color: theme.primary_color, logoUrl: theme.logo_url };
}

const KEY = "reviewrelay.brand";

/**
 * Stores the brand for the pages without a session, such as the sign-in. It is no secret, and no user's data, so it may
 * outlive the session.
 */
export function rememberBrand(brand: ShownBrand): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(brand));
  } catch {
    // Ignores the error: if the browser blocks storage, the next sign-in page has no brand.
  }
}

/** Returns the brand of the last session in this browser; undefined before the first one. */
export function rememberedBrand(): ShownBrand | undefined {
  try {
    // Trusts the value, because only `rememberBrand` stores it.
    const brand: ShownBrand | null = JSON.parse(localStorage.getItem(KEY) ?? "null");
    return brand ?? undefined;
  } catch {
    return undefined;
  }
}
