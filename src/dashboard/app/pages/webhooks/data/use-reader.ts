import { useApi } from "../../../session/session.tsx";
import { useViewedPartner } from "./viewed-partner.ts";
import type { Reader } from "./reads.ts";

export function useReader(): Reader {
  return { api: useApi(), partnerId: useViewedPartner()?.id };
}
