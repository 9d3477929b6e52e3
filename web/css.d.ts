// esbuild's loader "text" turns an imported style sheet into a string.
declare module "*.css" {
  const text: string;
  export default text;
}
