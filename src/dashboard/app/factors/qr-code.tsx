import { encode } from "uqr";

/** Width of the empty margin that readers of QR codes need, in modules. */
const MARGIN = 4;

interface QrCodeProps {
  readonly value: string;
  readonly label: string;
}

/** Draws a QR code in black on white, also in the dark scheme, because many readers do not read an inverted one. */
export function QrCode({ value, label }: QrCodeProps) {
  const { data, size } = encode(value, { ecc: "M", border: MARGIN });
  const path = data
    .flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : "")))
    .join("");
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`0 0 ${size} ${size}`}
      width={200}
      shapeRendering="crispEdges"
    >
      <rect width={size} height={size} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
}
