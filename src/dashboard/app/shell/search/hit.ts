import type { IconName } from "../../ui/icon.tsx";

/** Something that was found, and where it is. */
export interface Hit {
  readonly group:
    | "Pages"
    | "Events"
    | "Reviews"
    | "Subscriptions"
    | "Users"
    | "Companies"
    | "Documentation";
  readonly title: string;
  readonly hint: string;
  readonly icon: IconName;
  /** Below `/dashboard`; a guide is below `/docs`, and opens beside it. */
  readonly href: string;
}

export const isGuide = ({ href }: Hit): boolean => href.startsWith("/docs/");

/** Whether each word that was typed is somewhere in it. */
export function hasWords(text: string, typed: string): boolean {
  const lower = text.toLowerCase();
  return typed
    .toLowerCase()
    .split(/\s+/)
    .every((word) => lower.includes(word));
}
