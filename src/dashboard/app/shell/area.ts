import type { PageComponent } from "../chunks/page.tsx";
import type { Role } from "../session/roles.ts";
import type { IconName } from "../ui/icon.tsx";

/** One entry of the navigation with all paths below it. */
export interface Area {
  readonly path: string;
  readonly title: string;
  readonly icon: IconName;
  readonly roles: readonly Role[];
  /** Whether it is of the user in person, and nobody who acts as the user has it. */
  readonly isPersonal?: boolean;
  /** Path below `/dashboard` → page; loaded when it is first shown. */
  readonly pages: Readonly<Record<string, PageComponent>>;
  /** The same of pages that have paths of their own below theirs. */
  readonly nested?: Readonly<Record<string, PageComponent>>;
}
