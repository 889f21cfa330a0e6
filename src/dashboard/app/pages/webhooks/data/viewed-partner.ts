import { createContext, use } from "react";

import { useSession } from "../../../session/session.tsx";

/** A partner whom an operator looks at. */
interface ViewedPartner {
  readonly id: number;
  readonly name: string;
}

/** Above the pages of webhooks where an operator reads those of a partner; a partner's own people have nothing there. */
export const ViewedPartnerContext = createContext<ViewedPartner | undefined>(undefined);

export const useViewedPartner = (): ViewedPartner | undefined => use(ViewedPartnerContext);

/** Operators, and some who come by a portal link, change nothing: the controls that would are left out. */
export function useIsReadOnly(): boolean {
  const { portal } = useSession();
  const isViewed = useViewedPartner() !== undefined;
  return isViewed || (portal?.isReadOnly ?? false);
}
