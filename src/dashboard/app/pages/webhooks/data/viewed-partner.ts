import { createContext, use } from "react";

/** A partner whom an operator looks at. */
interface ViewedPartner {
  readonly id: number;
  readonly name: string;
}

/** Above the pages of webhooks where an operator reads those of a partner; a partner's own people have nothing there. */
export const ViewedPartnerContext = createContext<ViewedPartner | undefined>(undefined);

export const useViewedPartner = (): ViewedPartner | undefined => use(ViewedPartnerContext);

/** Operators read a partner's pages, and change nothing: the controls that would are left out. */
export const useIsReadOnly = (): boolean => useViewedPartner() !== undefined;
