import { useDocumentTitle } from "@mantine/hooks";
import { createContext, use } from "react";

/**
 * Name under which the user knows the service: its own name, or that of the partner's white label. Undefined before the
 * first sign-in of a browser, because no page may name the service before it knows the name.
 */
export const BrandName = createContext<string | undefined>(undefined);

/** Sets the title of the document: that of the page, and the name under which the user knows the service. */
export function usePageTitle(title: string): void {
  const name = use(BrandName);
  useDocumentTitle(name === undefined ? title : `${title} · ${name}`);
}
