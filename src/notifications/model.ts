export const NATIVE_EMAILS = ["queued", "suppressed", "no_address"] as const;
/** What became of one of our own mails, as the history says it (contract 9.5). */
export type NativeEmail = (typeof NATIVE_EMAILS)[number];

/** What a mail says of a review: names, its text and the tenant's branding. */
export interface Subject {
  readonly reviewId: number;
  readonly storeName: string;
  readonly accountName: string;
  /** The review site's name, as people know it. */
  readonly siteName: string;
  readonly rate: number;
  readonly reviewer: string | null;
  /** Null where the response was written on the site itself. */
  readonly responseBody: string | null;
  /** The partner's own name, where white label is on. */
  readonly brand: string | null;
  readonly primaryColor: string;
}

/** The account owner, as far as a mail needs it. */
export interface Owner {
  readonly email: string;
  readonly name: string;
}
