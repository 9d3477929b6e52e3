/* Regard look. Sources: web/. */
"use strict";(()=>{function m(e,t={},...n){let o=document.createElement(e);return Jt(o,t),qo(o,n),o}function Jt(e,t){for(let[n,o]of Object.entries(t))typeof o=="function"?e.addEventListener(n.slice(2),o):o==null||o===!1?e.removeAttribute(n):e.setAttribute(n,o===!0?"":String(o))}function K(e,...t){let n=document.activeElement,o=e.contains(n);e.replaceChildren(),qo(e,t),o&&e.contains(n)&&n.focus({preventScroll:!0})}function qo(e,t){for(let n of t)n==null||n===!1||e.append(typeof n=="string"?document.createTextNode(n):n)}function Me(e,t,n){let o=m("input",{type:"checkbox",onchange:()=>n(o.checked)});return o.checked=t,m("label",{class:"control"},o,e)}function Te(e,t,n,o){let r=t.map(([s,i])=>m("button",{type:"button","aria-pressed":String(s===n),onclick:()=>o(s)},i));return m("div",{class:"choice",role:"group","aria-label":e},...r)}function Se(e,t,n,o){let r=m("select",{onchange:()=>o(r.value)});for(let[s,i]of t)r.append(m("option",{value:s},i));return r.value=n,m("label",{class:"control"},e,r)}function jo(e){return e.replace(/^[\p{P}\p{S}]+|[\p{P}\p{S}]+$/gu,"")||e}var Ni="Which training pairs taught this?";function Vo(e,t){let n=m("div",{class:"blame",role:"status"}),o=e.split(/(\s+)/).map(r=>{if(!r.trim())return r;let s=jo(r);return m("button",{type:"button",title:Ni,onclick:()=>{Wi(n,s,()=>t(s))}},r)});return[m("bdi",{class:"words"},...o),n]}async function Wi(e,t,n){K(e,m("p",{},`Looking for pairs with “${t}” …`));try{K(e,...Ui(t,(await n()).candidates))}catch(o){K(e,m("p",{},o.message))}}function Ui(e,t){if(t.length===0)return[m("p",{},`No training pair has “${e}”.`)];let n=t.map(({location:r,copies:s,source:i,target:a})=>{let l=s?` and ${s} ${s===1?"copy":"copies"}`:"",c=[m("span",{dir:"auto"},i),m("span",{dir:"auto"},...Gi(a??"",e))];return m("li",{},...c,m("span",{class:"place"},r+l))});return[m("ol",{class:"pairs"},...n),m("p",{class:"small"},"The nearest pairs with this word, most similar first. Whether they taught it: regard blame --prove.")]}function Gi(e,t){let n=e.indexOf(t);return n<0?[e]:[e.slice(0,n),m("mark",{},t),e.slice(n+t.length)]}function Ko(e,t,n){let o=e.session,r={text:e.text,model:o.model,against:e.against&&e.against.text!==e.text?e.against.text:"",against_model:o.against_model},s=m("p",{class:"small",role:"status"}),i=m("p",{class:"problem",role:"alert"}),a=o.models.length>1?"The same text, or another one":"Another text to compare with",l=f("Text","text","model",""),c=f("Compare with","against","against_model",a);c.hidden=!e.against;let d=m("button",{type:"button",onclick:b});g();let u=m("button",{type:"submit",class:"main"},"Look inside"),h=m("form",{class:"box","aria-label":"Enter another text",onsubmit:w},l,c,m("div",{class:"controls"},u,d,s),i),p=!1;function f(x,L,$,M){let T=m("textarea",{rows:1,"aria-label":x,placeholder:M,dir:"auto",spellcheck:"false",oninput:()=>{r[L]=T.value,A()},onkeydown:S=>{S.key!=="Enter"||S.shiftKey||S.isComposing||(S.preventDefault(),h.requestSubmit())}});T.value=r[L];let A=()=>T.rows=Math.min(6,Math.max(T.value.split(`
`).length,T.value.length/90));A();let k=o.models.map((S,O)=>[String(O),S]),v=S=>r[$]=Number(S),E=k.length>1?Se("Model",k,String(r[$]),v):null;return m("div",{class:"row"},T,E)}function b(){c.hidden=!c.hidden,g(),c.hidden||c.querySelector("textarea").focus()}function g(){d.textContent=c.hidden?"Compare with …":"Without comparison",d.setAttribute("aria-expanded",String(!c.hidden))}async function w(x){if(x.preventDefault(),p)return;p=!0,u.setAttribute("aria-disabled","true"),K(i);let L=Date.now(),$=()=>{let T=Math.floor((Date.now()-L)/1e3);s.textContent=T>0?`Looking inside … ${T} s`:"Looking inside …"};$();let M=setInterval($,1e3);try{n(await t.look(c.hidden?{...r,against:"",against_model:r.model}:r))}catch(T){i.textContent=T.message}finally{clearInterval(M),s.textContent="",u.removeAttribute("aria-disabled"),p=!1}}return h}function In(e){let t=e.attention.find(n=>n.name==="decoder.cross");for(let n of e.hypotheses)n.link_heads??=t?[t.default_head]:[];for(let n of e.attention)n.default_head=Ke(e,[n])?.place??n.default_head;e.against&&In(e.against)}function Ke(e,t){let n=t.flatMap(r=>(e.ablation?.delta[r.name]??[]).flatMap((s,i)=>s.flatMap((a,l)=>a===null?[]:[{group:r,place:[i,l],delta:a}])));if(n.length===0)return null;let o=n.reduce((r,s)=>s.delta<r.delta?s:r);return o.delta<0?o:n.reduce((r,s)=>s.delta>r.delta?s:r)}var Ie=Float32Array.from({length:256},(e,t)=>(t/255)**2);function ft(e){return Math.round(Math.sqrt(Math.min(1,Math.max(0,e)))*255)}async function Be(e){let t=atob(e.data),n=new Uint8Array(t.length);for(let a=0;a<t.length;a++)n[a]=t.charCodeAt(a);let o=new Blob([n]).stream().pipeThrough(new DecompressionStream("deflate")),r=await new Response(o).arrayBuffer(),s={u8:()=>new Uint8Array(r),i8:()=>new Int8Array(r),i32:()=>new Int32Array(r),f32:()=>new Float32Array(r)}[e.dtype](),i=e.shape.reduce((a,l)=>a*l,1);if(s.length!==i)throw new Error(`A blob has ${s.length} numbers, its shape says ${i}.`);return{shape:e.shape,codes:s,scale:e.scale}}var ke=class{constructor(t,n,o=1/0){this.load=t;this.arrived=n;this.limit=o}load;arrived;limit;values=new Map;read(t){let n=this.entry(t);return n instanceof Error?void 0:n}has(t){return this.values.has(t)}problem(t){let n=this.values.get(t);return n instanceof Error?n.message:null}entry(t){if(this.values.has(t)){let n=this.values.get(t);return this.values.delete(t),this.values.set(t,n),n}this.values.set(t,void 0),this.values.size>this.limit&&this.values.delete(this.values.keys().next().value),this.load(t).catch(n=>n instanceof Error?n:new Error(String(n))).then(n=>{this.values.set(t,n),this.arrived()})}};function Xo(e){return e.format.startsWith("regard-film/")}function en(e,t){return e.filter(n=>n.step<=t).length-1}function tn(e,t){return e===null||t===0?null:Math.exp(e/t)}function Qo(e,t,n,o,r){let s=h=>h.reduce((p,f)=>p*f,1),i=t.probes.slice(0,n).reduce((h,p)=>h+s(p.shape),0),[a,l,c,d]=t.probes[n].shape,u=o-(e.attention.layers-a);return u<0||r>=l||c===0?null:{start:i+(u*l+r)*c*d,rows:c,columns:d}}function Nn(e,t,n){let[o,r]={"decoder.cross":[t.probes[n].tokens,e.probes[n].tokens],"decoder.self":[t.probes[n].tokens,t.probes[n].tokens],"encoder.self":[e.probes[n].tokens,e.probes[n].tokens],"":[[],[]]}[e.attention.name],s=([i,a])=>({id:0,text:i,word:a,role:a===null?"special":"text"});return{rows:o.map(s),columns:r.map(s)}}var Bn=new WeakMap;function Yo(e){return Bn.has(e.maps)||Bn.set(e.maps,Be(e.maps)),Bn.get(e.maps)}var Zo=[137,80,78,71,13,10,26,10],zi=Uint32Array.from({length:256},(e,t)=>{for(let n=0;n<8;n++)t=t&1?3988292384^t>>>1:t>>>1;return t});function qi(e){let t=4294967295;for(let n of e)t=zi[(t^n)&255]^t>>>8;return~t>>>0}function Jo(e){let t=e.map(({png:a})=>ji(a)),n=t[0][0].data,o=n.subarray(0,8),r=t[0].findIndex(({type:a})=>a==="IDAT"),s=[t[0][0],{type:"acTL",data:gt(e.length,0)},...t[0].slice(1,r)],i=0;return t.forEach((a,l)=>{if(a[0].data.join()!==n.join())throw new Error(`Frame ${l+1} has another size or color type.`);let{delay:c,isOver:d}=e[l],u=[gt(i++),o,gt(0,0,Math.round(c)<<16|1e3),[0,Number(d)]];s.push({type:"fcTL",data:Rt(u)});let h=a.filter(({type:p})=>p==="IDAT").map(p=>p.data);l===0?s.push({type:"IDAT",data:Rt(h)}):s.push({type:"fdAT",data:Rt([gt(i++),...h])})}),s.push({type:"IEND",data:new Uint8Array}),Rt([Zo,...s.flatMap(Vi)])}function ji(e){let t=new DataView(e.buffer,e.byteOffset,e.byteLength),n=[];for(let o=Zo.length;o<e.length;){let r=o+8,s=r+t.getUint32(o);n.push({type:String.fromCharCode(...e.subarray(o+4,r)),data:e.subarray(r,s)}),o=s+4}return n}function Vi({type:e,data:t}){let n=Rt([Array.from(e,o=>o.charCodeAt(0)),t]);return[gt(t.length),n,gt(qi(n))]}function gt(...e){let t=new DataView(new ArrayBuffer(4*e.length));return e.forEach((n,o)=>t.setUint32(4*o,n)),new Uint8Array(t.buffer)}function Rt(e){let t=new Uint8Array(e.reduce((o,r)=>o+r.length,0)),n=0;for(let o of e)t.set(o,n),n+=o.length;return t}function Pt(e,t){let n=m("a",{href:URL.createObjectURL(t),download:e});n.click(),setTimeout(()=>URL.revokeObjectURL(n.href),1e3)}var er={width:872,height:490},Dt=1,Ne=()=>Dt;function Xe(e,t=0){if(Dt===1)return Math.max(t,640,window.innerHeight-300);let n=e.getBoundingClientRect().top+window.scrollY;return Math.max(120,(window.innerHeight-n)/Dt-12)}function tr(e,t){let n=a=>{e.set({present:a}),document.fullscreenEnabled&&(a?document.documentElement.requestFullscreen().catch(()=>{}):document.fullscreenElement&&document.exitFullscreen().catch(()=>{}))},o=()=>{let{present:a}=e.state,{innerWidth:l,innerHeight:c}=window;Dt=a?Math.max(1,Math.min(l/er.width,c/er.height)):1,document.documentElement.classList.toggle("present",a),document.documentElement.style.setProperty("--zoom",String(Dt));let d=a?"Leave the presentation (Escape)":"Present (P)";r.textContent=a?"×":"Present",r.title=d,r.setAttribute("aria-label",d)},r=m("button",{type:"button",class:"presenter",onclick:()=>n(!e.state.present)});e.subscribe(a=>a.has("present")&&o());let s=()=>{e.state.present&&(o(),e.notify())};window.addEventListener("resize",s,{signal:t});let i=()=>document.fullscreenElement??e.set({present:!1});return document.addEventListener("fullscreenchange",i,{signal:t}),window.addEventListener("keydown",a=>{a.target.matches?.("input:not([type=checkbox],[type=range]), textarea, select")||a.ctrlKey||a.metaKey||a.altKey||(a.key.toLowerCase()==="p"?n(!e.state.present):a.key==="Escape"&&e.state.present&&!e.state.locked&&n(!1))},{capture:!0,signal:t}),o(),r}var be=class{constructor(t,n,o,r,s=(window.devicePixelRatio||1)*Ne()){this.font=r;let[i,a]=[Math.round(n*s),Math.round(o*s)];(t.width!==i||t.height!==a)&&(t.width=i,t.height=a,t.style.width=`${n}px`,t.style.height=`${o}px`),this.context=t.getContext("2d"),this.context.setTransform(s,0,0,s,0,0),this.context.clearRect(0,0,n,o)}font;context;rect(t,n,o,r,s){let i=new Path2D;s.radius?i.roundRect(t,n,o,r,s.radius):i.rect(t,n,o,r),this.draw(i,s)}path(t,n){this.draw(new Path2D(t),n)}text(t,n,o,r){let{context:s}=this;s.save(),s.translate(t,n),r.angle&&s.rotate(r.angle*Math.PI/180),s.font=`${r.weight??400} ${r.size??13}px ${this.font}`,s.fillStyle=r.fill,s.textAlign={start:"left",middle:"center",end:"right"}[r.anchor??"start"],s.textBaseline="middle",s.fillText(o,0,0),s.restore()}pixels(t,n,o,r,s){this.context.imageSmoothingEnabled=!1,this.context.drawImage(or(s),t,n,o,r)}image(t,n,o,r,s){this.context.drawImage(t,n,o,r,s)}draw(t,n){let{context:o}=this;o.globalAlpha=n.opacity??1,n.fill&&(o.fillStyle=n.fill,o.fill(t)),n.stroke&&(o.strokeStyle=n.stroke,o.lineWidth=n.width??1,o.setLineDash(n.dash?n.dash.split(" ").map(Number):[]),o.stroke(t)),o.globalAlpha=1}},Wn="http://www.w3.org/2000/svg",ot=class{element=document.createElementNS(Wn,"svg");constructor(t,n,o,r){Jt(this.element,{xmlns:Wn,width:t,height:n,viewBox:`0 0 ${t} ${n}`,"font-family":o}),r&&this.rect(0,0,t,n,{fill:r})}rect(t,n,o,r,s){this.add("rect",{x:t,y:n,width:o,height:r,rx:s.radius,...nr(s)})}path(t,n){this.add("path",{d:t,...nr(n)})}text(t,n,o,r){let s=this.add("text",{x:t,y:n,fill:r.fill,"font-size":r.size??13,"font-weight":r.weight??400,"text-anchor":r.anchor??"start","dominant-baseline":"central",transform:r.angle?`rotate(${r.angle} ${t} ${n})`:null});s.textContent=o}pixels(t,n,o,r,s){this.add("image",{x:t,y:n,width:o,height:r,href:or(s).toDataURL("image/png"),preserveAspectRatio:"none",style:"image-rendering: pixelated"})}add(t,n){let o=document.createElementNS(Wn,t);return Jt(o,n),this.element.append(o),o}};function nr(e){return{fill:e.fill??"none",stroke:e.stroke??null,"stroke-width":e.stroke?e.width??1:null,"stroke-dasharray":e.dash??null,opacity:e.opacity??null}}function or(e){let t=document.createElement("canvas");t.width=e.width,t.height=e.height;let n=new Uint8ClampedArray(e.data.buffer,e.data.byteOffset,e.data.byteLength);return t.getContext("2d").putImageData(new ImageData(n,e.width,e.height),0,0),t}var Ki={light:[[0,[255,255,255]],[90,[198,219,239]],[150,[107,174,214]],[205,[33,113,181]],[255,[8,38,92]]],dark:[[0,[20,22,27]],[90,[24,58,98]],[150,[33,105,172]],[205,[98,170,226]],[255,[226,241,255]]]},Un=null;function ae(){let e=getComputedStyle(document.documentElement),t=s=>e.getPropertyValue(s).trim(),n=t("--scheme");if(Un?.key===n)return Un.theme;let o=Xi(Ki[n==="dark"?"dark":"light"]),r={page:t("--page"),ink:t("--ink"),muted:t("--muted"),rule:t("--rule"),accent:t("--accent"),hue:t("--hue"),minus:t("--minus"),tint:t("--tint"),font:t("--font"),ramp:o.map(Qi),pixels:Uint32Array.from(o,([s,i,a])=>(4278190080|a<<16|i<<8|s)>>>0)};return Un={key:n,theme:r},r}function Xi(e){let t=[],n=new Set;for(let o=0;o<256;o++){let r=e.findIndex(([u])=>u>=o),[s,i]=e[Math.max(0,r-1)],[a,l]=e[r],c=a===s?1:(o-s)/(a-s),d=i.map((u,h)=>Math.round(u+c*(l[h]-u)));for(;n.has(d.join());)d[2]+=d[2]<128?1:-1;n.add(d.join()),t.push(d)}return t}function Qi([e,t,n]){return"#"+[e,t,n].map(o=>o.toString(16).padStart(2,"0")).join("")}function Qe(e,t,n){let o=(a,l)=>parseInt(a.slice(l,l+2),16),[r,s,i]=[1,3,5].map(a=>Math.round(o(e,a)+n*(o(t,a)-o(e,a))));return(4278190080|i<<16|s<<8|r)>>>0}function nn(e){let[t,n,o]=[1,3,5].map(r=>{let s=parseInt(e.slice(r,r+2),16)/255;return s<=.04045?s/12.92:((s+.055)/1.055)**2.4});return .2126*t+.7152*n+.0722*o>.18?"#000000":"#ffffff"}var Gn=null;function ge(e,t,n){return Gn??=document.createElement("canvas").getContext("2d"),Gn.font=`${t}px ${n}`,Gn.measureText(e).width}function me(e,t,n,o){if(ge(e,t,n)<=o)return e;let r=Array.from(e);for(;r.length>1&&ge(r.join("")+"…",t,n)>o;)r.pop();return r.join("")+"…"}var Yi=2,Ye=24,Zi=560,Ji=16384,ea="Made with Regard";function zn(){let e=s=>document.querySelector(s)?.textContent?.trim()??"",[t,n,o]=["header .input","header h1 bdi","header .sure"].map(e),r=`${t&&"→ "}${n}${o&&` (${o})`}`;return{title:e("#panel h2"),lines:[t,r].filter(Boolean)}}function qn(e,t,n,o=document.createElement("canvas"),r=Yi){let s=Math.max(e.width,Zi),i=[...bt(t.title,18,700,s,2,n),...t.lines.flatMap(f=>bt(f,14,400,s,3,n))],a=i.reduce((f,b)=>f+b.size*1.45,0)+12,l=Math.ceil(s+2*Ye),c=Math.ceil(a+e.height+22+2*Ye),d=Math.min(r,Ji/Math.max(l,c)),u=new be(o,l,c,n.font,d);u.rect(0,0,l,c,{fill:n.page});let h=Ye;for(let{text:f,size:b,weight:g}of i)u.text(Ye,h+b*.7,f,{fill:n.ink,size:b,weight:g}),h+=b*1.45;let p=document.createElement("canvas");return e.draw(new be(p,e.width,e.height,n.font,d),n),u.image(p,Ye,Ye+a,e.width,e.height),u.text(Ye,c-Ye-2,ea,{fill:n.muted,size:12}),o}function rr(e,t){qn(t,zn(),ae()).toBlob(n=>n&&Pt(`${e}.png`,n),"image/png")}function sr(e,{width:t,height:n,draw:o}){let r=ae(),s=new ot(t,n,r.font,r.page);o(s,r);let i=new XMLSerializer().serializeToString(s.element);Pt(`${e}.svg`,new Blob([i],{type:"image/svg+xml"}))}function bt(e,t,n,o,r,s){let i=s.font,a=n>500?o/1.08:o,l=[];for(let c of e.split(/\s+/).filter(Boolean)){let d=l.at(-1),u=d===void 0?c:`${d} ${c}`;if(d!==void 0&&(l.length===r||ge(u,t,i)<=a)?l[l.length-1]=u:l.push(c),l.length===r&&ge(l[r-1],t,i)>a)break}return l.map(c=>({text:me(c,t,i,a),size:t,weight:n}))}var lr=60,ta=4e6,na=2e6,oa=1.5,ra=3e3,[ir,ar]=[16,24];function cr(e){let t=Math.max(1,Math.ceil((e-1)/(lr-1))),n=Array.from({length:Math.ceil((e-1)/t)},(o,r)=>r*t);return{stride:t,steps:[...n,e-1]}}async function sa(e,t){let n=ae(),{width:o,height:r,caption:s,draw:i,tell:a,delay:l}=e,{steps:c}=cr(e.count),d=c.map(b=>bt(a(b),ir,400,o,3,n)),u=Math.max(...d.map(b=>b.length)),h=r+12+u*ar,p=document.createElement("canvas"),f=p.getContext("2d",{willReadFrequently:!0});for(let b=Math.min(oa,Math.sqrt(na/(o*h)));;b*=.7){let g=[],w=0,x=null;for(let[L,$]of c.entries()){if(await new Promise(k=>setTimeout(k)),!t(L,c.length))return null;qn({width:o,height:h,draw:k=>{i($,k,n),d[L].forEach(({text:v},E)=>k.text(0,r+12+(E+.5)*ar,v,{fill:n.ink,size:ir}))}},s,n,p,b),x=ia(f,x);let T=await new Promise(k=>p.toBlob(k,"image/png"));if(!T)throw new Error("This browser cannot encode the picture.");if(w+=T.size,w>ta&&b>.4)break;let A=new Uint8Array(await T.arrayBuffer());g.push({png:A,delay:L===c.length-1?ra:l,isOver:L>0})}if(g.length===c.length)return Jo(g)}}function ia(e,t){let n=e.getImageData(0,0,e.canvas.width,e.canvas.height),o=new Uint32Array(n.data.buffer),r=o.slice();for(let s=0;s<r.length;s++)r[s]|=4278190080,o[s]=t?.[s]===r[s]?0:r[s];return e.putImageData(n,0,0),r}function aa(e,t){let{stride:n}=cr(t),o=n>1?` Too long for ${lr} frames: it has one step in ${n}.`:"";return`Saved: ${Math.max(.1,e/1e6).toFixed(1)} MB.${o}`}function on(e){let t="Save animation",n=m("span",{class:"small",role:"status"}),o=m("button",{type:"button",class:"quiet",onclick:()=>{s()}},t),r="idle";async function s(){if(r=r==="idle"?"busy":"canceled",r!=="canceled"){K(n);try{let i=await e(),a=await sa(i,(l,c)=>(o.textContent=`Cancel (${l} of ${c})`,r==="busy"));a&&(Pt(`${i.name}.png`,new Blob([a],{type:"image/png"})),K(n,aa(a.length,i.count)))}catch(i){K(n,`Not saved: ${i.message}`)}r="idle",o.textContent=t}}return m("span",{class:"animation slide-hidden"},o," ",n)}var la=/[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,ca={"\n":"↵","	":"⇥","\r":"␍"},ua=/[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/,ur=typeof Intl.Segmenter=="function"?new Intl.Segmenter:null;function Ft(e,t){if(e.length<=t)return e;let n=e.slice(0,t*12),o=ur?[...ur.segment(n)].map(r=>r.segment):Array.from(n);return o.length<=t&&n.length===e.length?e:o.slice(0,t-1).join("")+"…"}function jn(e){let t=e.replace(la,n=>ca[n]??`U+${n.charCodeAt(0).toString(16).toUpperCase().padStart(4,"0")}`);return ua.test(t)?`⁨${t}⁩`:t}function de(e,t=!1,n=16){if(!e)return"?";if(e.bytes)return`‹${Ft(e.bytes.toUpperCase(),n)}›`;let o=e.text.replace(/^ /,"");return o===""?"␣":(t&&/^[\p{L}\p{N}]/u.test(o)?"·":"")+Ft(jn(Ft(o,n*2)),n)}var mr=({text:e})=>/[\n\r]/.test(e)&&e.trim()==="";function ze(e,t){let[n,o]=[e[t-1],e[t]];return t>0&&o.word!==null&&o.word===n.word&&!mr(o)&&!mr(n)}var dr="‹E2 82›: part of a character, written as bytes.";function pr(e){return Object.values(e.sequences).some(t=>t.some(n=>n.bytes))}function Vn(e){return e.every(t=>t.role==="special"||t.text.length<=1)}function rt(e,t=16){let n=!Vn(e);return e.map((o,r)=>de(o,n&&ze(e,r),t))}function we(e,t=400){let n=e.map(o=>o?o.bytes?"�":o.text:"?").join("");return Ft(jn(n.trim()),t)}function Y(e,t=400){return Ft(jn(e.replace(/\s*\n\s*/g," ")),t)}var ve={"encoder.self":"Encoder self-attention","decoder.self":"Decoder self-attention","decoder.cross":"Cross-attention"},hr={"encoder.self":"source attends to source","decoder.self":"each token attends to earlier ones","decoder.cross":"generated token attends to source"};function rn(e,t){if(t.columns==="source"&&e.picture){let[o,r]=e.picture.kind==="image"?["patch","patches"]:["time step","time steps"];return t.rows==="source"?`Which ${r} each ${o} reads`:`Which ${r} it reads for each ${e.picture.kind==="image"?"word":"token"}`}let n=Vn(e.sequences[t.columns]??[])?"characters":"words";return t.name==="decoder.cross"?t.row_start>0?`Which source ${n} it reads`:"Which keys it reads":t.name==="decoder.self"?`Which earlier ${n} it reads`:`Which ${n} each ${n.slice(0,-1)} reads`}function sn(e,t,n){return`layer ${t+1} of ${e.layers}, head ${n+1} of ${e.heads}`}function wt(e,t,n){return`${ve[e]}, layer ${t+1}, head ${n+1}`}var Ht=()=>matchMedia("(any-hover: hover)").matches;function Ee(e,t,n="Click to pin it"){return Ht()?`Point at ${e} ${t}. ${n}; arrow keys move.`:`Tap ${e} ${t}.`}function an(e,t){return e.attention.find(n=>n.name===t)??e.attention[0]}function Fe(e,t){return e&&e.row<t.rows.length&&(e.column??0)<t.columns.length?e:null}var ce=class{base=m("canvas",{"aria-hidden":"true"});overlay=m("canvas",{class:"overlay","aria-hidden":"true"});element;constructor(t,n={}){this.element=m("div",{class:"stage",tabindex:0,role:"application","aria-label":t,...n},this.base,this.overlay)}draw(t,n,o){let r=ae();this.element.style.width=`${t}px`,this.element.style.height=`${n}px`,o(new be(this.base,t,n,r.font),r)}drawOverlay(t,n,o){let r=ae();o(new be(this.overlay,t,n,r.font),r)}describe(t,n,o){Object.assign(this.element.dataset,{left:t,top:n,cell:o})}locate(t){let n=this.base.getBoundingClientRect();return{x:(t.clientX-n.left)/Ne(),y:(t.clientY-n.top)/Ne()}}};function he(e,t,n){let o=()=>({width:t().width,height:t().height,draw:n}),r=(s,i,a)=>m("button",{type:"button",class:"quiet","aria-label":i,onclick:a},s);return m("span",{class:"saves"},r("Save as PNG","Save as PNG",()=>rr(e(),o())),r("SVG","Save as SVG",()=>sr(e(),o())))}function ie(e){return e>=.01?e.toFixed(2):e===0?"0":e<.001?"< 0.001":e.toFixed(3)}function Z(e){let t=e*100;if(t>0&&t<.01)return"< 0.01 %";let n=t>=99.95||t===0?0:t>=99?1:t>=10?0:t>=1?1:2;return`${t.toFixed(n)} %`}function X(e){return`“${e}”`}function qe(e,t){let n=e.sequences[t.rows]??[],o=e.sequences[t.columns]??[];return{rows:n.slice(t.row_start,t.row_start+t.row_count),columns:o.slice(0,t.column_count)}}function fe(e,t,n){let o=rt(e),r=[];return e.forEach((s,i)=>{let a=s.role==="special";if(!(a&&!n))if(t&&ze(e,i)&&r.length>0){let l=r[r.length-1];l.members.push(i),l.label=we(l.members.map(c=>e[c]),16)}else r.push({label:o[i],special:a,members:[i]})}),r}function je(e,t,n,o){let r=[...n,...o].every(u=>u.members.length===1),s=new Uint8Array(n.length*o.length);if(r){let u=o.length===t;n.forEach((h,p)=>{let f=h.members[0]*t;u?s.set(e.subarray(f,f+t),p*t):o.forEach((b,g)=>s[p*o.length+g]=e[f+b.members[0]])})}let i=r?null:new Float32Array(s.length);i&&n.forEach((u,h)=>o.forEach((p,f)=>{let b=0;for(let g of u.members)for(let w of p.members)b+=Ie[e[g*t+w]];i[h*o.length+f]=b/u.members.length,s[h*o.length+f]=ft(b/u.members.length)}));let a=new Map,l=(u,h)=>{let p=u*o.length+h;return a.get(u)?.values[h]??(i?i[p]:Ie[s[p]])};return{rows:n,columns:o,codes:s,value:l,hidden:u=>{if(a.has(u))return a.get(u).hidden;let[h,p]=[0,0];for(let f of n[u].members)for(let b=0;b<t;b++)h+=Ie[e[f*t+b]];for(let f=0;f<o.length;f++)p+=l(u,f);return Math.max(0,h/n[u].members.length-p)},refine:(u,h)=>{let p=g=>h.reduce((w,x)=>w+x[g],0)/h.length,f=o.map(g=>g.members.reduce((w,x)=>w+p(x),0)),b=h.flat().reduce((g,w)=>g+w,0)/h.length;a.set(u,{values:f,hidden:b-f.reduce((g,w)=>g+w,0)})},isExact:u=>a.has(u)}}function We(e,t,n){let o=[];for(let r=0;r<e.columns.length;r++){let s=e.value(t,r);o.length===n&&s<=o[n-1].weight||(o.push({column:r,weight:s}),o.sort((i,a)=>a.weight-i.weight),o.length>n&&o.pop())}return o}function ln(e,t,n,o,r=1/0,s=1/0,i=!1){let a=Math.min(n,Math.max(1,Math.floor(r))),l=Math.min(t,Math.max(1,Math.floor(s))),c=new Uint32Array(a*l),d=new Uint8Array(a),u=Uint32Array.from({length:n},(h,p)=>Math.floor(p*a/n));for(let h=0;h<l;h++){let[p,f]=[Math.floor(h*t/l),Math.max(Math.floor((h+1)*t/l),1)];d.fill(0);let b=1;for(let w=p;w<Math.max(f,p+1);w++){let x=w*n;for(let L=0;L<n;L++){let $=e[x+L];$>d[u[L]]&&(d[u[L]]=$),$>b&&(b=$)}}let g=i?255/b:1;for(let w=0;w<a;w++)c[h*a+w]=o[Math.round(d[w]*g)]}return{width:a,height:l,data:c}}var ma=-53,[fr,da]=[Math.sin(53*Math.PI/180),Math.cos(53*Math.PI/180)],Kn=140,_t=({label:e})=>e.replace(/^patch (?=\d+,\d+$)/,"");function He(e,t,n,o=640){let[r,s]=[e.rows.length,e.columns.length];if(Math.max(r,s)>96){let w=Math.min(6,(t-14)/s,Math.max(o,900)/r);return{cell:w,left:12,top:12,width:s*w+14,height:r*w+14,labeled:!1,level:!1,size:0}}let i=t<600?12:13,a=w=>Math.min(Kn,Math.max(12,...w.map(x=>ge(x,i,n.font)))),l=a(e.rows.map(_t))+10,c=a(e.columns.map(_t)),d=e.columns.slice(-6).map((w,x,L)=>a([_t(w)])*da-(L.length-1-x)*16),u=Math.max(0,...d)+6,h=(t-l-u)/Math.max(s,1),p=Math.min(Math.max(s,r)<=6?120:96,(o-c*fr-24)/r),f=Math.max(t<600?18:16,Math.floor(Math.min(p,h))),b=c<=f-4,g=b?24:c*fr+16;return{cell:f,left:l,top:g,width:l+s*f+u,height:g+r*f+4,labeled:!0,level:b,size:i}}function Ae(e,t,n,o,r={}){let{cell:s,left:i,top:a}=n,[l,c]=[t.rows.length,t.columns.length],[d,u]=[c*s,l*s],h=ln(t.codes,l,c,o.pixels,d*(r.pixelRatio??1),u*(r.pixelRatio??1),r.stretched);e.pixels(i,a,d,u,h),e.rect(i-.5,a-.5,d+1,u+1,{stroke:o.rule}),Ot(e,t,n,o,null),r.numbers&&t.rows.forEach((p,f)=>gr(e,t,n,o,f,r))}function gr(e,t,n,o,r,{stretched:s}={}){let{cell:i,left:a,top:l}=n;if(!n.labeled||i<26)return;let c=t.codes.subarray(r*t.columns.length,(r+1)*t.columns.length),d=s?255/Math.max(1,...c):1;t.columns.forEach((u,h)=>{let p=t.value(r,h);if(p<.005)return;let f=nn(o.ramp[Math.round(c[h]*d)]),b=p.toFixed(2).replace(/^0/,""),g=i>50?14:11;e.text(a+(h+.5)*i,l+(r+.5)*i,b,{fill:f,size:g,anchor:"middle"})})}function Ot(e,t,n,o,r){if(!n.labeled)return;let s=i=>i?o.accent:o.muted;t.rows.forEach((i,a)=>br(e,t,n,o,a,s(a===r?.row))),t.columns.forEach((i,a)=>wr(e,t,n,o,a,s(a===r?.column)))}function Ze(e,t,n,o,r,s,i={}){let{cell:a,left:l,top:c}=n,d=t.columns.length*a,u=c+r.row*a,h=s?2.5:1.5;if(!n.labeled){let p=l+((r.column??0)+.5)*a;e.path(`M${l} ${u+a/2}h${d}`,{stroke:o.accent,width:1}),r.column!==null&&(e.path(`M${p} ${c}v${t.rows.length*a}`,{stroke:o.accent,width:1,opacity:.5}),e.rect(p-5,u+a/2-5,10,10,{stroke:o.accent,width:h,radius:5}));return}i.numbers||gr(e,t,n,o,r.row,i),e.rect(l,u,d,a,{stroke:o.accent,width:h}),br(e,t,n,o,r.row,o.accent),r.column!==null&&(e.rect(l+r.column*a,u,a,a,{stroke:o.accent,width:h+.5}),wr(e,t,n,o,r.column,o.accent))}function Ue(e,t,n,o){let r=Math.floor((o-t.top)/t.cell),s=Math.floor((n-t.left)/t.cell);return r<0||r>=e.rows.length||s>=e.columns.length?null:{row:r,column:s<0?null:s}}function cn(e,t,n,o=1){let r=i=>o!==null?ie(i*o).replace("1.00","1"):i===1?"row's largest":i===.5?"":`${i*100} %`,s=Uint32Array.from({length:256},(i,a)=>t.pixels[a]);e.pixels(0,2,n,10,{width:256,height:1,data:s}),e.path(`M0 1.5h${n}`,{stroke:t.rule});for(let i of[0,.1,.25,.5,1]){let a=Math.sqrt(i)*(n-1)+.5;e.path(`M${a} 12v4`,{stroke:t.muted});let l=i===0?"start":i===1?"end":"middle";e.text(i===0?0:a,23,r(i),{fill:t.muted,size:11,anchor:l})}}function br(e,t,n,o,r,s){let i=me(_t(t.rows[r]),n.size,o.font,Kn),a=n.top+(r+.5)*n.cell;e.text(n.left-6,a,i,{fill:s,size:n.size,anchor:"end"})}function wr(e,t,n,o,r,s){let i=me(_t(t.columns[r]),n.size,o.font,Kn),a=n.left+(r+.5)*n.cell;n.level?e.text(a,n.top-12,i,{fill:s,size:n.size,anchor:"middle"}):e.text(a,n.top-7,i,{fill:s,size:n.size,angle:ma})}var un=["","7 4","2 3","9 3 2 3"],pa={loss:"Loss",learning_rate:"Learning rate",bleu:"BLEU",chrf:"chrF",f1:"F1",bits_per_byte:"Bits per byte"};function xt(e){return pa[e]??e.charAt(0).toUpperCase()+e.slice(1).replaceAll("_"," ")}function mn(e){let t=e.runs.flatMap(n=>[...Object.keys(n.validation),...Object.keys(n.training)]);return[...new Set(["loss",...t])]}function yt(e,t){return e.runs.flatMap((n,o)=>{let r=un[o%un.length];return[{curve:n.training[t],dash:r,dots:!1},{curve:n.validation[t],dash:r,dots:!0}].filter(({curve:i})=>i?.steps.length>0)})}function xr(e,t,n){let o=(t-e)/Math.max(n,1);if(!(o>0))return[e];let r=10**Math.floor(Math.log10(o)),s=[1,2,5,10].map(a=>a*r).find(a=>a>=o*.999),i=[];for(let a=Math.ceil(e/s-1e-9);a*s<=t+s*1e-9;a++)i.push(a*s);return i}function yr(e,t,n,o,r){let s=e.flatMap(({curve:g})=>g.values.filter(w=>w!==null)),[i,a]=[Math.min(...s),Math.max(...s)];s.length===0&&([i,a]=[0,1]),i===a&&([i,a]=[i-Math.abs(i||1)*.1,a+Math.abs(a||1)*.1]);let[l,c,d,u]=[56,14,10,26],h=Math.max(t,1),p=n?g=>Math.log2(g+1)/Math.log2(h+1):g=>g/h,f=[0,...Array.from({length:9},(g,w)=>10**w)].filter(g=>g<=h),b={x:o-l-c,y:r-d-u};return{width:o,height:r,left:l,right:c,top:d,bottom:u,x:g=>l+p(g)*b.x,y:g=>d+(a-g)/(a-i)*b.y,xTicks:n?f:xr(0,h,Math.max(2,Math.floor(b.x/110))),yTicks:xr(i,a,4)}}function dn(e,t,n,o,r){let s=o.height-o.bottom;for(let a of o.yTicks){let l=o.y(a);e.path(`M${o.left} ${l}H${o.width-o.right}`,{stroke:t.rule}),e.text(o.left-8,l,ha(a),{fill:t.muted,size:12,anchor:"end"})}for(let a of o.xTicks){let l=o.x(a)>o.width-40?"end":"middle",c=Math.min(o.x(a),o.width-2);e.text(c,s+17,a.toLocaleString("en"),{fill:t.muted,size:12,anchor:l})}e.path(`M${o.left} ${s}H${o.width-o.right}`,{stroke:t.muted});for(let a of r)e.path(`M${o.x(a)} ${s}v5`,{stroke:t.muted});let i=n.some(a=>a.dots);for(let{curve:a,dash:l,dots:c}of n){let d=a.steps.flatMap((h,p)=>{let f=a.values[p];return f===null?[]:[`${o.x(h).toFixed(1)} ${o.y(f).toFixed(1)}`]});if(d.length===0)continue;let u=i&&!c;if(e.path(`M${d.join("L")}`,{stroke:t.hue,width:u?1.2:2.2,opacity:u?.45:1,dash:l}),c&&d.length<=80)for(let h of d){let[p,f]=h.split(" ").map(Number);e.rect(p-3,f-3,6,6,{fill:t.hue,radius:3})}}}function pn(e,t,n,o){let r=n.x(o);e.path(`M${r} ${n.top}V${n.height-n.bottom+6}`,{stroke:t.accent,width:2})}function kr(e,t){let n=null;return e?.steps.forEach((o,r)=>{o<=t&&(n=e.values[r])}),n}function ha(e){return e!==0&&(Math.abs(e)<.001||Math.abs(e)>=1e5)?e.toExponential(0):String(Number(e.toPrecision(4)))}function hn(e,t){let[n,o,r]=[0,e.length,t.length];for(;n<o&&n<r&&e[n]===t[n];)n++;for(;o>n&&r>n&&e[o-1]===t[r-1];)[o,r]=[o-1,r-1];let[s,i]=[o-n,r-n],a=s*i<=4e6,l=i+1,c=a?new Uint16Array((s+1)*l):null;if(c)for(let p=s-1;p>=0;p--)for(let f=i-1;f>=0;f--)c[p*l+f]=e[n+p]===t[n+f]?c[(p+1)*l+f+1]+1:Math.max(c[(p+1)*l+f],c[p*l+f+1]);let d=Array.from({length:n},(p,f)=>({kind:"same",a:f,b:f})),[u,h]=[0,0];for(;u<s||h<i;)c&&u<s&&h<i&&e[n+u]===t[n+h]?d.push({kind:"same",a:n+u++,b:n+h++}):u<s&&(!c||h===i||c[(u+1)*l+h]>=c[u*l+h+1])?d.push({kind:"removed",a:n+u++}):d.push({kind:"added",b:n+h++});for(let p=0;o+p<e.length;p++)d.push({kind:"same",a:o+p,b:r+p});return d}var fa="\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}\\p{sc=Thai}\\p{sc=Lao}\\p{sc=Khmer}",ga=new RegExp(`\\s*(?:(?:(?![${fa}])[\\p{L}\\p{M}\\p{N}_'’-])+|\\S)`,"gu");function vr(e){return e.match(ga)??[]}function kt(e,t){let[n,o]=[vr(e),vr(t)],r=s=>s.map(i=>i.trim());return hn(r(n),r(o)).map(s=>({kind:s.kind,text:s.kind==="removed"?n[s.a]:o[s.b]}))}function $r(e){let t=n=>e.filter(o=>o.kind===n&&/[\p{L}\p{N}]/u.test(o.text)).length;return Math.max(t("removed"),t("added"))}var[Xn,fn]=[120,30];function Qn(e,t,n){let[o,{reference:r,reference_length:s}]=[e.frames[t].probes[n],e.probes[n]],i=(d,u)=>d===null?"":`${Z(d)}${u>1?" per token":""}`,a=i(tn(o.logprob,o.length),o.length),l=i(tn(o.reference_logprob,s),s),c=r!==""&&o.output.trim()===r.trim();return[a&&`Output ${a}`,c?"equal to the reference":l&&`reference ${l}`].filter(Boolean).join(" · ")}function Mr(e){let t=m("div",{class:"examples",role:"group","aria-label":"Examples"}),n=[],o=null;function r(i){o=i,n=i.probes.map((a,l)=>{let c=m("strong",{dir:"auto"}),d=m("span",{class:"small"}),u=m("canvas",{"aria-hidden":"true",title:"Probability of the reference over the training"}),h=m("button",{type:"button",class:"example",onclick:()=>e.set({probe:l})},m("span",{class:"source",dir:"auto"},Y(a.text,160)),c,a.reference?m("span",{class:"small",dir:"auto"},`Reference: ${Y(a.reference,160)}`):null,m("span",{class:"numbers"},u,d));return{output:c,numbers:d,line:u,button:h}}),K(t,...n.map(a=>a.button))}function s(i){o!==i&&r(i);let{frame:a,probe:l}=e.state;n.forEach((c,d)=>{let u=i.frames[a].probes[d].output,h=a>0?i.frames[a-1].probes[d].output:u,f=kt(h.slice(0,2e3),u.slice(0,2e3)).filter(b=>b.kind!=="removed").map(b=>b.kind==="added"?m("mark",{},Y(b.text,60)):Y(b.text,60));K(c.output,...u.trim()===""?[m("span",{class:"small"},"(nothing)")]:f),c.numbers.textContent=Qn(i,a,d),c.button.setAttribute("aria-pressed",String(d===l)),ba(c.line,i,d,a)})}return{element:t,update:s,reset:()=>o=null}}function ba(e,t,n,o){let r=ae(),s=t.probes[n].reference_length,i=t.frames.map(h=>tn(h.probes[n].reference_logprob,s));if(e.hidden=i.every(h=>h===null),e.hidden)return;let a=new be(e,Xn,fn,r.font),l=h=>3+h/Math.max(1,i.length-1)*(Xn-6),c=h=>fn-3-h*(fn-6),d=i.flatMap((h,p)=>h===null?[]:[`${l(p).toFixed(1)} ${c(h).toFixed(1)}`]);a.path(`M0 ${fn-2.5}H${Xn}`,{stroke:r.rule}),a.path(`M${d.join("L")}`,{stroke:r.hue,width:1.6});let u=i[o];u!==null&&a.rect(l(o)-3,c(u)-3,6,6,{fill:r.accent,radius:3})}var Yn={"decoder.cross":"Which source words it reads","decoder.self":"Which earlier words it reads","encoder.self":"Which words each word reads","":""};function Zn(e,t,n,o){let[r,s]=[[],[]],i=(a,l)=>Array.from({length:Math.max(a.length,l.length)},(c,d)=>{let[u,h]=[a[d],l[d]];return!h||u&&u.label.length>=h.label.length?u:h});for(let a of e.frames){let l=Nn(e,a,t),c=a.probes[t].shape;r=i(r,fe(l.rows.slice(0,c[2]),!1,!0)),s=i(s,fe(l.columns.slice(0,c[3]),!1,!0))}return He({rows:r,columns:s},n,ae(),o)}async function Jn(e,t,n,o,r){let s=Qo(e,t,n,o,r),{codes:i}=await Yo(t);if(!s)return null;let a=Nn(e,t,n),l=i.subarray(s.start,s.start+s.rows*s.columns),c=fe(a.rows.slice(0,s.rows),!1,!0);return je(l,s.columns,c,fe(a.columns.slice(0,s.columns),!1,!0))}function Lr(e){let t=m("h2"),n=m("div",{class:"head-grid",role:"group","aria-label":"Layers and heads"}),o=m("p",{class:"readout",role:"status"}),r=new ce("Attention of the chosen head",{role:"img",tabindex:null}),s=m("div",{class:"scroller",tabindex:0,role:"region","aria-label":"Map"},r.element),i=m("div",{class:"detail"},t,n,o,s),[a,l]=[null,null],c=[],d=0;function u(g){let{name:w,layers:x,heads:L}=g.attention,$=w==="decoder.cross"?x:Math.min(x,1);c=[];let M=Array.from({length:$},(T,A)=>x-$+A).map(T=>[m("span",{class:"small"},`layer ${T+1}`),...Array.from({length:L},(A,k)=>{let v=`layer ${T+1}, head ${k+1}`,S=m("button",{type:"button","aria-label":v,onclick:()=>e.set({layer:T,head:k})},String(k+1));return c.push({button:S,layer:T,head:k}),S})]);n.style.gridTemplateColumns=`max-content repeat(${L}, max-content)`,K(n,...M.flat())}let h=null,p=null;async function f(g){if(i.hidden=g.attention.layers===0,i.hidden)return;let{frame:w,probe:x,layer:L,head:$}=e.state;p!==g&&(p=g,u(g));for(let v of c)v.button.setAttribute("aria-pressed",String(v.layer===L&&v.head===$));t.textContent=Yn[g.attention.name];let M=i.clientWidth;(h?.film!==g||h.probe!==x||h.width!==M)&&(h={film:g,probe:x,width:M,layout:Zn(g,x,Math.max(240,M-8||560))});let T=g.frames[w],A=++d,k=await Jn(g,T,x,L,$);A===d&&(l=h.layout,a=k,r.draw(l.width,l.height,(v,E)=>{a&&Ae(v,a,l,E,{pixelRatio:window.devicePixelRatio})}),r.describe(l.left,l.top,l.cell),r.element.dataset.frame=String(w),b(null))}function b(g){let w=a&&l&&g&&Ue(a,l,r.locate(g).x,r.locate(g).y);if(l&&r.drawOverlay(l.width,l.height,(x,L)=>{w&&Ze(x,a,l,L,w,!1)}),!a)o.textContent="The map of this head is too large for the film.";else if(w){let x=We(a,w.row,3).map(({column:L,weight:$})=>`${X(a.columns[L].label)} ${ie($)}`);o.textContent=`${X(a.rows[w.row].label)} reads ${x.join(", ")}.`}else o.textContent=Ht()?"Point at a row to see what it reads.":"Tap a row to see what it reads."}return r.element.addEventListener("pointermove",b),r.element.addEventListener("pointerdown",b),r.element.addEventListener("pointerleave",()=>b(null)),{element:i,update:f}}var Tr=236,st={width:520,height:200},eo=40,Sr={width:460,height:420};function to({step:e,loss:t}){let n=t===null?"before the first step":`loss ${t.toFixed(3)}`;return`Step ${e.toLocaleString("en")} · ${n}`}async function Er({doc:e,state:t},n,o,r,s){let{probe:i,layer:a,head:l,metric:c}=t,d=await Promise.all(n.frames.map(g=>Jn(n,g,i,a,l))),u=d.some(g=>g!==null),h=Zn(n,i,Sr.width,Sr.height),p={...h,left:h.left+st.width+eo,top:h.top+32},f=xa(n,i,ae()),b=`${Yn[n.attention.name]} (layer ${a+1}, head ${l+1})`;return{name:"film",caption:{title:Y(e.text,160),lines:r},width:st.width+(u?eo+Math.max(h.width,320):0),height:Math.max(f.bottom,u?h.height+36:0),count:n.frames.length,delay:s,draw:(g,w,x)=>{wa(w,x,e,n,o,c,n.frames[g].step),f.draw(g,w),u&&(w.text(st.width+eo,10,b,{fill:x.muted,size:13}),d[g]&&Ae(w,d[g],p,x,{pixelRatio:1.5}))},tell:g=>to(n.frames[g])}}function wa(e,t,n,o,r,s,i){let a=o.frames.map(c=>c.step);dn(e,t,yt(n,s),r,a),pn(e,t,r,i);let l={fill:t.muted,size:13,anchor:"end"};e.text(r.width-r.right,r.height+12,`${xt(s)} by step`,l)}function xa(e,t,n){let{text:o,reference:r}=e.probes[t],s=e.frames.map(p=>p.probes[t].output.trim()||"(nothing)"),i=(p,f,b)=>bt(Y(p,300),f,400,st.width,b,n),a=i(o,14,2),l=s.map(p=>i(p,19,3)),c=r?i(`Reference: ${r}`,13,2):[],d=Tr+a.length*20+6,u=d+Math.max(...l.map(p=>p.length))*27+6,h=u+c.length*19;return{bottom:h+20,draw(p,f){let b=(g,w,x,L,$)=>g.forEach(({text:M},T)=>f.text(0,w+(T+.5)*x,M,{fill:L,size:$}));b(a,Tr,20,n.muted,14),b(l[p],d,27,n.ink,19),b(c,u,19,n.muted,13),b([{text:Qn(e,p,t)}],h,19,n.muted,13)}}}function gn({film:e}){let[t,n]=e?.default_head??[0,0];return{frame:(e?.frames.length??1)-1,probe:0,layer:t,head:n,metric:"loss",isLog:e!==null}}function Ar(e,t,n){let r=[["step",n.film?.frames[e.frame]?.step??0,e.frame!==t.frame],["example",e.probe+1,e.probe!==t.probe],["layer",e.layer+1,e.layer!==t.layer||e.head!==t.head],["head",e.head+1,e.layer!==t.layer||e.head!==t.head],["curve",encodeURIComponent(e.metric),e.metric!==t.metric],["axis",e.isLog?"log":"linear",e.isLog!==t.isLog]].filter(([,,s])=>s).map(([s,i])=>`${s}=${i}`);return`#film${r.length?`?${r.join("&")}`:""}`}function no(e,t){let n=gn(t),{film:o}=t,r=new URLSearchParams(e.split("?")[1]??""),s=(a,l)=>{let c=Number(r.get(a))-1;return r.has(a)&&Number.isInteger(c)&&c>=0&&c<l?c:null};if(o){let a=en(o.frames,Number(r.get("step")));/^\d+$/.test(r.get("step")??"")&&a>=0&&(n.frame=a),n.probe=s("example",o.probes.length)??n.probe;let[l,c]=[s("layer",o.attention.layers),s("head",o.attention.heads)];l!==null&&c!==null&&Object.assign(n,{layer:l,head:c})}let i=r.get("curve");return i&&mn(t).includes(i)&&(n.metric=i),["log","linear"].includes(r.get("axis")??"")&&(n.isLog=r.get("axis")==="log"),n}var Cr=`#panel > section > .controls {
  margin-top: 16px;
}
.scrubber-row {
  display: flex;
  gap: 14px;
  align-items: center;
  flex-wrap: wrap;
  margin: 10px 0 2px;
}
.scrubber-row button {
  min-width: 76px;
}
.scrubber {
  flex: 1 1 240px;
  accent-color: var(--accent);
  margin: 0;
  height: 28px;
}
.scrubber-row output {
  min-width: 15em;
}
.shots {
  display: grid;
  grid-template-columns: minmax(280px, 1fr) minmax(0, 1.2fr);
  gap: 32px;
  align-items: start;
  margin-top: 16px;
}
.examples {
  display: grid;
  gap: 8px;
}
.example {
  display: grid;
  gap: 2px;
  justify-items: start;
  text-align: start;
  padding: 8px 12px;
  overflow-wrap: anywhere;
}
.example[aria-pressed="true"] {
  border-color: var(--accent);
  box-shadow: 0 0 0 1px var(--accent);
}
.example .source {
  color: var(--muted);
}
.example strong {
  font-weight: 500;
  font-size: 17px;
}
.example mark {
  background: color-mix(in srgb, var(--hue) 22%, var(--page));
  color: inherit;
  border-radius: 3px;
}
.example .numbers {
  display: flex;
  gap: 10px;
  align-items: center;
  flex-wrap: wrap;
}
@media (max-width: 760px) {
  .shots {
    grid-template-columns: minmax(0, 1fr);
    gap: 18px;
  }
  .scrubber {
    flex-basis: 100%;
    order: 1;
  }
}
`;var Rr=300,ka=4e3;function Dr(e,t){let n={doc:e,state:no(location.hash,e),set(D){n.state={...n.state,...D},y(),clearTimeout(o),o=setTimeout(C,100)}},o,r,s=m("p",{class:"small",role:"status"}),i=m("div",{class:"controls"}),a=new ce("Curves of the run",{role:"img",tabindex:null}),l=m("p",{class:"small"}),c=m("input",{type:"range",min:0,class:"scrubber","aria-label":"Step of the training"}),d=m("button",{type:"button",onclick:()=>r?k():v()},"Play"),u=m("output",{class:"small"}),h=m("p",{class:"small"}),p=Mr(n),f=Lr(n),b=on(()=>{let D=E(st.width,st.height);return Er(n,n.doc.film,D,Pr(n.doc),Rr)}),g=m("div",{class:"scrubber-row"},d,c,u,b),w=m("div",{class:"shots"},p.element,f.element),x=m("div"),L=m("footer",{class:"small"},"Made with Regard: ",m("code",{},"regard look RUN")),$=m("div",{id:"panel"},m("section",{"aria-label":"Training"},i,a.element));$.firstElementChild.append(l,g,h,w),K(t,m("header",{},m("div",{},m("h1",{},Y(e.text,160)),s,x)),m("main",{},$,L));let M=()=>n.doc.film?.frames??[],T=D=>n.set({frame:Math.max(0,Math.min(M().length-1,D))}),A=()=>matchMedia("(prefers-reduced-motion: reduce)").matches;function k(){clearInterval(r),r=void 0,d.textContent="Play"}function v(){if(A())return T(n.state.frame+1);n.state.frame>=M().length-1&&T(0),d.textContent="Pause",r=setInterval(()=>{T(n.state.frame+1),n.state.frame>=M().length-1&&k()},Rr)}c.addEventListener("input",()=>{k(),T(Number(c.value))}),window.addEventListener("keydown",D=>{let N=D.target;if(!M().length||D.ctrlKey||D.metaKey||D.altKey||N.closest("select, .scroller"))return;if(D.key===" "&&!N.closest("button"))return D.preventDefault(),r?k():v();let[z,q]=[n.state.frame,M().length-1],V={ArrowLeft:z-1,ArrowRight:z+1,Home:0,End:q}[D.key];V!==void 0&&(D.preventDefault(),k(),T(V))}),a.element.addEventListener("click",D=>{if(!M().length)return;let{x:N}=a.locate(D),z=q=>Math.abs(S().x(M()[q].step)-N);k(),T(M().reduce((q,V,_)=>z(_)<z(q)?_:q,0))});function E(D,N){let{doc:z,state:q}=n,V=yt(z,q.metric),_=z.runs.flatMap(W=>[...Object.values(W.training),...Object.values(W.validation)]),U=Math.max(1,..._.map(W=>W.steps.at(-1)??0),M().at(-1)?.step??0);return yr(V,U,q.isLog,D,N)}let S=()=>E(Math.max(260,($.clientWidth||800)-4),window.innerWidth<760?170:220);function O(){let{doc:D,state:N}=n,z=S(),q=M().map(V=>V.step);a.draw(z.width,z.height,(V,_)=>dn(V,_,yt(D,N.metric),z,q)),a.drawOverlay(z.width,z.height,(V,_)=>{M().length&&pn(V,_,z,M()[N.frame].step)}),a.element.setAttribute("aria-label",`${xt(N.metric)} by step`)}function H(){let{doc:D,state:N}=n,z=mn(D).map(V=>[V,xt(V)]),q=[["log","logarithmic"],["linear","linear"]];K(i,Se("Curve",z,N.metric,V=>n.set({metric:V})),Se("Steps",q,N.isLog?"log":"linear",V=>n.set({isLog:V==="log"})))}let P=null;function y(){let{doc:D,state:N}=n;(P?.doc!==D||P.metric!==N.metric||P.isLog!==N.isLog)&&(P={doc:D,metric:N.metric,isLog:N.isLog},i.contains(document.activeElement)||H(),K(s,...Pr(D).flatMap((V,_)=>[_>0&&m("br"),V])),K(x,...D.notes.map(V=>m("p",{class:"note"},Y(V)))),l.textContent=va(D,N.metric)),O();let{film:z}=D;for(let V of[g,h,w])V.hidden=!z;if(!z)return;let q=z.frames[N.frame];Object.assign(c,{max:String(z.frames.length-1)}),c.value=String(N.frame),b.hidden=z.frames.length<2,u.textContent=to(q),c.setAttribute("aria-valuetext",u.textContent),h.textContent=Ht()?"Arrow keys move, Space plays. Marked words are new since the frame before.":"",p.update(z),f.update(z)}function C(){let D=Ar(n.state,gn(n.doc),n.doc);try{D!==location.hash&&history.replaceState(null,"",D)}catch{}}window.addEventListener("hashchange",()=>{n.state=no(location.hash,n.doc),P=null,y()});async function R(){let{doc:D,state:N}=n,z=new URL("document",location.href);z.searchParams.set("version",D.version);let q=await fetch(z).catch(()=>null),V=q?.ok?await q.json():null;if(!V?.runs)return;let _=D.film?.frames[N.frame]?.step??0,U=N.frame>=M().length-1,W=en(V.film?.frames??[],_);n.doc=V;let oe=gn(V),te=U?oe.frame:Math.max(0,W);n.state=D.film?{...N,frame:te}:{...oe,metric:N.metric},y()}if(e.live&&location.protocol.startsWith("http")){let D=()=>n.doc.runs.every(q=>q.is_finished),N=!1,z=async()=>{N||document.hidden||D()||(N=!0,await R().finally(()=>N=!1))};setInterval(z,ka),document.addEventListener("visibilitychange",z)}let I=window.innerWidth,G=()=>{p.reset(),y()};window.addEventListener("resize",()=>{window.innerWidth!==I&&G(),I=window.innerWidth}),matchMedia("(prefers-color-scheme: dark)").addEventListener("change",G),document.head.append(m("style",{},Cr)),y()}function Pr(e){return e.runs.map(t=>{let n=t.training.loss?.steps.at(-1)??0,o=t.validation[t.metric],r=kr(o,1/0),s=[`${e.runs.length>1?`${t.name}: `:""}${t.is_finished?"finished at step":"step"} ${n.toLocaleString("en")}`,t.is_finished?"":`of ${t.steps.toLocaleString("en")}`,r===null?"":`· validation ${xt(t.metric).toLowerCase()} ${r.toFixed(3)}`];return Y(s.filter(Boolean).join(" "))})}function va(e,t){let n=yt(e,t),o=a=>n.some(l=>l.dots===a),r=o(!0)&&o(!1)?"Thin: training. Thick with dots: validation.":"",s=["solid","dashed","dotted","dash-dotted"],i=e.runs.length>1?e.runs.map((a,l)=>`${s[l%un.length]}: ${a.name}`):[];return Y([r,i.join(", ")].filter(Boolean).join(" "))}var Ce=e=>/^[1-9]\d{0,6}$/.test(e)?Number(e)-1:null,Je=(e,t)=>({name:t,write:n=>n[e]?"1":"0",read:n=>n==="1"||n==="0"?{[e]:n==="1"}:null}),Fr=(e,t,n)=>({name:t,write:o=>o[e],read:o=>n.includes(o)?{[e]:o}:null}),Bt=(e,t)=>({name:t,write:n=>String(n[e]+1),read:n=>Ce(n)===null?null:{[e]:Ce(n)}}),$a=(e,t)=>e.attention.some(n=>n.name===t),Nt=[{name:"attention",write:e=>e.group,read:(e,t)=>$a(t,e)?{group:e}:null},Bt("layer","layer"),Bt("head","head")],It={name:"pin",write:({locked:e})=>e?[e.row,e.column].map(t=>t===null?"":t+1).join():"",read:e=>{let[t,n]=e.split(",").map(Ce);return t==null?null:{locked:{row:t,column:n??null}}}},Hr=[...Nt,Je("meanOfHeads","mean"),{name:"from",write:({query:e})=>e===null?"":e==="mean"?"all":String(e+1),read:e=>e==="all"?{query:"mean"}:Ce(e)===null?null:{query:Ce(e)}}],_r={name:"off",write:({headsOff:e})=>e.map(t=>t.replace(/(\d+)\.(\d+)$/,(n,o,r)=>`${+o+1}.${+r+1}`)).join(),read:(e,t)=>{let n=e.split(",").flatMap(o=>{let r=o.split("."),[s,i]=r.slice(2).map(Ce),a=t.attention.find(c=>c.name===r.slice(0,2).join("."));return a&&s!==null&&i!==null&&s<a.layers&&i<a.heads?[`${a.name}.${s}.${i}`]:[]});return n.length?{headsOff:[...new Set(n)].slice(0,t.live?void 0:1)}:null}},Ma={ablation:"break"},Or={story:[{name:"step",write:({beat:e})=>e===null?"":String(e+1),read:e=>Ce(e)===null?null:{beat:Ce(e)}}],image:Hr,spectrogram:Hr,heads:[...Nt,Fr("drawing","drawing",["heatmap","lines"]),Je("words","words"),Je("specials","special"),Je("numbers","numbers"),Je("stretched","stretched"),It],compare:[...Nt,{name:"against",write:({againstHead:e})=>e?e.map(t=>t+1).join("."):"",read:e=>{let[t,n]=e.split(".").map(Ce);return t===null||n===null||n===void 0?null:{againstHead:[t,n]}}},{name:"position",write:({compared:e})=>e===null?"":String(e+1),read:e=>Ce(e)===null?null:{compared:Ce(e)}},Je("words","words"),It],search:[{name:"hypothesis",write:({candidate:e})=>e===null?"":String(e),read:(e,t)=>/^\d{1,7}$/.test(e)&&Number(e)<(t.search?.step.length??0)?{candidate:Number(e)}:null},{name:"steps",write:e=>e.unfolded?"all":"",read:e=>e==="all"?{unfolded:!0}:null}],alignment:[Bt("hypothesis","hypothesis"),Fr("alignment","drawing",["ribbons","matrix"]),Je("alignedTokens","tokens"),{name:"heads",write:({alignedHeads:e})=>e.map(t=>t.split(".").map(n=>Number(n)+1).join(".")).join(),read:e=>{let t=e.split(",").map(n=>n.split(".").map(Ce));return t.every(n=>n.length===2&&!n.includes(null))?{alignedHeads:t.map(n=>n.join("."))}:null}},It],attribution:[{name:"method",write:e=>e.method,read:(e,t)=>Object.hasOwn(t.attribution?.methods??{},e)?{method:e}:null},It],break:[_r,{name:"head",write:()=>"",read:_r.read}],sampling:[Bt("step","step")],masks:[{name:"attention",write:e=>e.mask,read:(e,t)=>t.masks.some(n=>n.group===e)?{mask:e,hiddenTerms:[]}:null},It],positions:[{name:"stack",write:e=>e.stack,read:(e,t)=>t.positions.some(n=>n.stack===e)?{stack:e}:null}],merges:[Bt("merge","merge")]},Ir=[Je("present","present")];function oo(e,t){let n=s=>s.write(e)!==s.write(t),r=[...Or[e.view]??[],...Ir].filter(s=>Nt.includes(s)?Nt.some(n):n(s)).map(s=>`${s.name}=${encodeURIComponent(s.write(e)).replaceAll("%2C",",")}`);return`#${e.view}${r.length?`?${r.join("&")}`:""}`}function ro(e,t,n,o){let[r,s]=e.replace(/^#/,"").split("?"),i=Ma[r]??r;if(!o.includes(i))return t;let a={...t,view:i},l=new URLSearchParams(s??"");for(let d of[...Or[i]??[],...Ir]){let u=l.get(d.name);u&&Object.assign(a,d.read(u,n)??{})}let c=n.attention.find(d=>d.name===a.group);return c&&(a.layer>=c.layers||a.head>=c.heads)&&([a.layer,a.head]=c.default_head),a}var vt=class{constructor(t,n=!1){this.doc=t;this.isAgainst=n;this.available=t.live&&location.protocol.startsWith("http")}doc;isAgainst;available;async look(t){let n=new URLSearchParams(Object.entries(t).map(([o,r])=>[o,String(r)]));return(await this.send(new URL("look",location.href),{method:"POST",body:n})).document}blame(t){return this.ask("blame",{word:t})}map(t,n,o){return this.ask("map",{group:t,layer:n,head:o})}async row(t,n,o,r){return(await this.ask("row",{group:t,layer:n,head:o,row:r})).weights}continue(t){return this.ask("continue",{candidate:t})}hypothesis(t){return this.ask("hypothesis",{candidate:t})}logits(t){return this.ask("logits",{position:t})}ablate(t){return this.ask("ablate",{head:t})}async ask(t,n){let o=new URL(t,location.href);for(let[r,s]of Object.entries(n))[s].flat().forEach(i=>o.searchParams.append(r,String(i)));return this.doc.session&&o.searchParams.set("session",String(this.doc.session.number)),this.isAgainst&&o.searchParams.set("side","against"),this.send(o)}async send(t,n){let o=await fetch(t,n).catch(()=>{throw new Error("The server does not respond. Is the command still running?")}),r=await o.json().catch(()=>({}));if(!o.ok)throw new Error(r.error??`The server answered ${o.status}.`);return r}};var bn=class{constructor(t){this.state=t}state;listeners=[];pending=null;set(t){let n=Object.keys(t).filter(o=>t[o]!==this.state[o]);n.length!==0&&(this.state={...this.state,...t},this.notify(n))}notify(t=[]){if(this.pending){for(let n of t)this.pending.add(n);return}this.pending=new Set(t),queueMicrotask(()=>{let n=this.pending;this.pending=null;for(let o of this.listeners)o(n)})}subscribe(t){this.listeners.push(t)}};function Re(e){let t=e.predictions.map((o,r)=>r),n=t.filter(o=>e.predictions[o].position===null||e.predictions[o].labels[0]!=="O");return n.length===0?{told:t,untagged:0}:{told:n,untagged:t.length-n.length}}function $t(e){return e===0?"":e===1?"1 other word has no tag.":`${e.toLocaleString("en")} other words have no tag.`}var io=e=>e.predictions.length===1&&e.predictions[0].position===null&&e.predictions[0].labels.length>0?e.predictions[0]:null;function La(e){let{told:t,untagged:n}=Re(e);if(n===0)return null;let o=e.sequences.source??[],r=t.map(s=>{let{position:i,labels:a}=e.predictions[s],l=o[i??0]?.word;return[o.filter((d,u)=>u===i||l!==null&&d.word===l).map(({text:d})=>d).join("").trim(),a[0]]});return r.every(([s,i])=>e.output.includes(`${s}/${i}`))?r.map(s=>s.join(": ")).join(", "):null}function et(e){let t=La(e);if(t)return t;let n=io(e)?.labels[0].trim();return n&&/^\d+$/.test(n)?`Label ${n}`:e.output||e.text}var Br=e=>(e.sequences.target??[]).flatMap(({logprob:t})=>t===void 0?[]:[t??-1/0]),so=e=>e.reduce((t,n)=>t+n,0);function Nr(e){let t=e.predictions.filter(n=>n.probabilities.length>0);return t.length===0?null:{count:t.length,least:t.reduce((n,o)=>o.probabilities[0]<n.probabilities[0]?o:n)}}function wn(e){let t=io(e);if(t)return{kind:"label",value:t.probabilities[0]};if(e.predictions.length>0){let o=Nr(e);return o&&{kind:"prediction",value:o.least.probabilities[0]}}let n=Br(e);return n.length===0?null:e.sampling?{kind:"token",value:Math.exp(so(n)/n.length)}:{kind:"sequence",value:Math.exp(so(n))}}function Wr(e){let t=wn(e);if(!t)return null;let n=Z(t.value),o=io(e);if(o){let a=o.labels.slice(1,4).map((l,c)=>`${l.trim()} ${Z(o.probabilities[c+1])}`);return{text:`${n} sure`,title:a.length?`Next: ${a.join(", ")}`:""}}if(t.kind==="prediction"){let{count:a,least:l}=Nr(e),c=`Of ${X(l.labels[0].trim())}, the least certain of ${a} predictions`;return a===1?{text:`${n} sure`,title:""}:{text:`at least ${n} sure`,title:c}}let r=Br(e),s=`${Z(Math.exp(so(r)/r.length))} per token`,i=`Product of ${r.length} token probabilities; on average ${s} (geometric mean)`;return t.kind==="token"?{text:`sampled, ${s} on average`,title:i}:{text:`probability ${n}, ${s}`,title:i}}function Ur(e){let{name:t,parameters:n}=e.model;if(!t||n===0||e.merges)return"";let o=a=>/^[\w./-]+$/.test(a)?a:`'${a.replaceAll("'","'\\''")}'`,r=[],s=e.search?.settings.beam_size;typeof s=="number"&&r.push(`--beam ${s}`);for(let a of["temperature","top_k","top_p"]){let l=e.sampling?.filters[a];l!=null&&r.push(`--${a.replace("_","-")} ${l}`)}let{against:i}=e;return i&&i.text!==e.text&&r.unshift(`--against ${o(i.text)}`),i&&i.model.sha256!==e.model.sha256&&r.unshift(`--against-model ${o(i.model.name||"MODEL")}`),["regard look",o(t),o(e.text),...r].join(" ")}function Mt(e,t){return t==null?!1:!((e==="temperature"||e==="repetition_penalty")&&t===1)}function zr(e,t,n,o=[]){let r=Float64Array.from(e);for(let x of o)r[x]=-1/0;let s=1/0,i=x=>{Math.abs(x)<s&&(s=Math.abs(x))},a=[{name:"model",probabilities:Wt(r)}],l=x=>Mt(x,n[x])?n[x]:null,c=l("no_repeat_ngram");if(c!==null){for(let x of Ta(t,c))r[x]=-1/0;a.push({name:"no_repeat_ngram",probabilities:Wt(r)})}let d=l("repetition_penalty");if(d!==null){for(let x of new Set(t))r[x]*=d;a.push({name:"repetition_penalty",probabilities:Wt(r)})}let u=l("temperature");if(u===0){let x=Ut(r);i(r[x[0]]-r[x[1]]);let L=new Float64Array(r.length);L[x[0]]=1;let $=["temperature","top_k","top_p","min_p","typical_p"].filter(M=>l(M)!==null);return{stages:[...a,...$.map(M=>({name:M,probabilities:L}))],margin:s}}u!==null&&(r=r.map(x=>x/u),a.push({name:"temperature",probabilities:Wt(r)}));let h=Wt(r),p=(x,L)=>{h=qr(h.map(($,M)=>L(M)?$:0)),a.push({name:x,probabilities:h})},f=l("top_k");if(f!==null){let x=Ut(r);f<x.length&&i(r[x[f-1]]-r[x[f]]);let L=new Set(x.slice(0,f));p("top_k",$=>L.has($))}let b=l("top_p");if(b!==null){let x=Gr(Ut(h),h,b,i);p("top_p",L=>x.has(L))}let g=l("min_p");if(g!==null){let x=g*h.reduce((L,$)=>Math.max(L,$),0);h.forEach(L=>L>0&&i(L-x)),p("min_p",L=>h[L]>=x)}let w=l("typical_p");if(w!==null){let x=h.reduce((T,A)=>T-(A>0?A*Math.log(A):0),0),L=h.map(T=>Math.abs(-Math.log(T)-x)),$=Array.from(L.keys()).sort((T,A)=>L[T]-L[A]||T-A);for(let T=1;T<$.length;T++)h[$[T]]>0&&i(L[$[T]]-L[$[T-1]]);let M=Gr($,h,w,i);p("typical_p",T=>M.has(T))}return{stages:a,margin:s}}function Ta(e,t){let n=e.slice(e.length-t+1),o=[];for(let r=0;r+t<=e.length;r++)n.slice(0,t-1).every((s,i)=>e[r+i]===s)&&o.push(e[r+t-1]);return o}function Gr(e,t,n,o){if(n>=1)return new Set(e);let r=new Set,s=0;for(let i of e){if(o(s-n),s>=n)break;r.add(i),s+=t[i]}return r}function Ut(e){return Array.from(e.keys()).sort((t,n)=>e[t]===e[n]?t-n:e[n]>e[t]?1:-1)}function Wt(e){let t=e.reduce((n,o)=>Math.max(n,o),-1/0);return qr(e.map(n=>Math.exp(n-t)))}function qr(e){let t=e.reduce((n,o)=>n+o,0);return e.map(n=>n/t)}var Ge=96,Gt=108,tt=24,xn=26;function yn(e,t){return{width:Ge+t*Gt+4,height:xn+e*tt+6}}function ao(e,t,n,o,r){let s=Math.max(1e-9,...t.flatMap(a=>a.values)),i=a=>a/s*(Gt-56);n.forEach((a,l)=>e.text(Ge+l*Gt,10,me(a,12,r.font,Gt-6),{fill:r.muted,size:12})),t.forEach((a,l)=>{let c=xn+l*tt+tt/2;a.isChosen&&e.rect(0,c-tt/2+1,o.width,tt-2,{fill:r.hue,opacity:.16,radius:4});let d=me(a.label,13,r.font,Ge-14);e.text(Ge-8,c,d,{fill:r.ink,weight:a.isChosen?700:400,anchor:"end"}),a.values.forEach((u,h)=>{let p=Ge+h*Gt;if(u===0){e.text(p,c,"removed",{fill:r.muted,size:11});return}let f=Math.max(1.5,i(u));e.rect(p,c-6,f,12,{fill:r.hue}),e.text(p+f+5,c,ie(u),{fill:r.ink,size:11})})})}function jr(e){return{width:360,height:xn+e*tt+6}}function Vr(e,t,n,o,r){let s=Math.min(8,t.tokens.length),i=c=>t.probabilities[c]/t.times[c],a=c=>c/i(0)*(o.width-Ge-104),l={fill:r.muted,size:12};e.text(Ge,10,"probability / wait",l),e.text(o.width-52,10,"prob.",{...l,anchor:"end"}),e.text(o.width-2,10,"wait",{...l,anchor:"end"});for(let c=0;c<s;c++){let d=xn+c*tt+tt/2;e.text(Ge-8,d,me(n(t.tokens[c]),13,r.font,Ge-14),{fill:r.ink,anchor:"end",weight:c>0?400:700}),e.rect(Ge,d-6,Math.max(1.5,a(i(c))),12,{fill:r.hue,opacity:c>0?.5:1});let u={fill:r.ink,size:11,anchor:"end"};e.text(o.width-52,d,ie(t.probabilities[c]),u),e.text(o.width-2,d,ie(t.times[c]),u)}}var Kr={no_repeat_ngram:{label:"no_repeat_ngram",min:1,max:6,step:1,start:3},repetition_penalty:{label:"repetition_penalty",min:.5,max:3,step:.05,start:1.2},temperature:{label:"temperature",min:0,max:2,step:.05,start:.8},top_k:{label:"top_k",min:1,max:100,step:1,start:20},top_p:{label:"top_p",min:.01,max:1,step:.01,start:.9},min_p:{label:"min_p",min:.01,max:1,step:.01,start:.1},typical_p:{label:"typical_p",min:.01,max:1,step:.01,start:.9}},Sa={temperature:1,repetition_penalty:1},Qr={name:"sampling",title:"Sampling",applies:e=>(e.sampling?.steps.length??0)>0,mount:Ea};function Ea({doc:e,store:t,blobs:n,live:o}){let r=e.sampling,s=e.sequences.target??[],i=new ke(async P=>Be(await o.logits(Number(P))),()=>t.notify(),16),a=m("div",{class:"chips",role:"group","aria-label":"Generated tokens"}),l=m("p",{class:"fact"}),c=m("div",{class:"sliders"}),d=m("h3"),u=new ce("Probabilities after each filter",{role:"img",tabindex:null}),h=m("h3"),p=m("p",{class:"small"}),f=new ce("How the token was drawn",{role:"img",tabindex:null}),b=m("div",{class:"controls"}),g=m("p",{class:"readout",role:"status","aria-live":"polite"}),w=m("section",{class:"sampling","aria-label":"Sampling step"},m("h2",{},"How one token was sampled"),m("div",{class:"scroller"},a),l,g,m("div",{class:"columns"},m("div",{},m("h3",{},"Filters, in their order"),c),m("div",{class:"wide"},d,Xr("Distributions",u)),m("div",{},h,p,Xr("Draw",f),b))),x=null;S();let L=P=>r.filter_order.every(y=>{let[C,R]=[P.filters[y],r.filters[y]];return C===R||!Mt(y,C)&&!Mt(y,R)}),$=P=>e.vocabulary[P]?de(e.vocabulary[P]):`#${P}`;function M(P){let{state:y}=t;(P.has("step")||P.has("filters"))&&(x=null);let C=r.steps[Math.min(y.step,r.steps.length-1)];K(a,...r.steps.map(E)),(P.size===0||P.has("filters"))&&O(y);let R=C.logits?n.read(C.logits):o.available?i.read(String(C.position)):null;if(!R){g.textContent=R===null?"This file has no distribution of this step; a live page (regard look) has all.":"Reading the distribution …",l.textContent=`${X($(C.token))} was generated.`;return}let I=s.slice(0,C.position).map(N=>N.id),G=zr(R.codes,I,y.filters,r.suppressed),D=L(y);l.textContent=H(C,G,D),g.textContent=D?"These are the recorded settings. Move a slider to see another distribution.":`Not the recorded settings: ${X($(C.token))} was sampled with ${Ca(r.filters)}.`,A(C,G),k(C,G,D)}function T(P,y){let C=Ut(y.stages[0].probabilities).slice(0,12);return C.includes(P.token)||(C[C.length-1]=P.token),C.map(R=>({label:$(R),values:y.stages.map(I=>I.probabilities[R]),isChosen:R===P.token}))}function A(P,y){let C=y.stages[y.stages.length-1].probabilities,R=T(P,y),I=C.reduce((q,V)=>q+ +(V>0),0),G=R.filter(q=>q.values[q.values.length-1]>0).length,D=G<I?`, ${G} of them shown`:"";d.textContent=`${I.toLocaleString("en")} of ${C.length.toLocaleString("en")} tokens are left${D}`;let N=y.stages.map(q=>q.name),z=yn(R.length,N.length);u.draw(z.width,z.height,(q,V)=>ao(q,R,N,z,V)),u.element.setAttribute("aria-label",`Probabilities after the filters: ${R.slice(0,5).map(q=>`${q.label} ${ie(q.values[q.values.length-1])}`).join(", ")}`)}function k(P,y,C){let R=y.stages[y.stages.length-1].probabilities,I=x??(C?P.race:null),G=()=>{x=Ra(R),t.notify()},D=v().filters.temperature===0;if(h.textContent=D?"No dice: greedy":x?"Another draw, not the recorded one":"How the dice fell",p.textContent=D?"At temperature 0 the most probable token is taken.":I?`Each token gets a random wait (exponential, mean 1); the largest probability / wait wins. ${Aa(I.contenders)}`:"No token was drawn with these settings. Draw one:",f.element.hidden=!I||D,K(b,D?null:m("button",{type:"button",onclick:G},"Draw again"),x?m("button",{type:"button",onclick:()=>(x=null,t.notify())},"Recorded draw"):null,he(()=>`sampling.${P.position}`,()=>yn(T(P,y).length,y.stages.length),(z,q)=>{let V=T(P,y),_=y.stages.map(U=>U.name);ao(z,V,_,yn(V.length,_.length),q)})),!I||D)return;let N=jr(Math.min(8,I.tokens.length));f.draw(N.width,N.height,(z,q)=>Vr(z,I,$,N,q)),f.element.setAttribute("aria-label",`The draw: ${$(I.tokens[0])} won`)}let v=()=>t.state;function E(P,y){return m("button",{type:"button","aria-pressed":String(y===t.state.step),onclick:()=>t.set({step:y})},$(P.token))}function S(){for(let y of r.filter_order){let C=Kr[y];if(!C)continue;let R=q=>t.set({filters:{...t.state.filters,[y]:q}}),I=m("input",{type:"checkbox","aria-label":`${C.label} on`,onchange:()=>R(I.checked?C.start:Sa[y]??null)}),{min:G,max:D,step:N}=C,z=m("input",{type:"range",min:G,max:D,step:N,id:`slider-${y}`,"data-name":y,oninput:()=>R(Number(z.value))});c.append(m("div",{class:"slider"},I,m("label",{for:`slider-${y}`},C.label),z,m("output",{})))}let P=()=>t.set({filters:{...r.filters}});c.append(m("button",{type:"button",onclick:P},"Recorded settings"))}function O(P){for(let y of c.querySelectorAll(".slider")){let C=y.querySelector("input[type=range]"),R=C.dataset.name,I=P.filters[R],G=Mt(R,I);y.querySelector("input[type=checkbox]").checked=G,C.value=String(I??Kr[R].start),y.querySelector("output").textContent=G?String(Number(I.toFixed(3))):"off",y.classList.toggle("off",!G)}}function H(P,y,C){let R=y.stages[0].probabilities[P.token],I=y.stages[y.stages.length-1].probabilities[P.token],G=1+y.stages[0].probabilities.reduce((N,z)=>N+ +(z>R),0),D=`${X($(P.token))} was sampled: the model's choice number ${G}, probability ${ie(R)}`;return C?`${D}, after the filters ${ie(I)}.`:I>0?`${D}; with these settings ${ie(I)}.`:`${D}; with these settings it is impossible.`}return{element:w,update:M}}function Aa(e){return e===1?"Only one token was left.":`${e.toLocaleString("en")} tokens took part.`}function Yr(e){let t=n=>n.logprob??0;return e.reduce((n,o,r)=>t(o)<t(e[n])?r:n,0)}function Xr(e,t){return m("div",{class:"scroller",tabindex:0,role:"group","aria-label":e},t.element)}function Ca(e){return Object.entries(e).filter(([n,o])=>Mt(n,o)).map(([n,o])=>`${n} ${o}`).join(", ")||"no filter"}function Ra(e){let t=Array.from(e.keys()).filter(o=>e[o]>0).map(o=>({token:o,probability:e[o],time:-Math.log(1-Math.random())||1e-12})).sort((o,r)=>r.probability/r.time-o.probability/o.time),n=t.slice(0,24);return{tokens:n.map(o=>o.token),probabilities:n.map(o=>o.probability),times:n.map(o=>o.time),contenders:t.length}}function Zr(e,t){let n=e.picture?e.attention.filter(a=>a.columns==="source"):e.attention,o=Ke(e,n),r=o?.group??e.attention.find(a=>a.name==="decoder.cross")??e.attention[0],[s,i]=(o&&Pa(e,o))??r?.default_head??[0,0];return{view:t,beat:null,group:r?.name??"encoder.self",layer:s,head:i,meanOfHeads:!1,query:null,drawing:"heatmap",statistic:"entropy",words:e.against!==void 0,specials:!0,numbers:r!==void 0&&r.row_count*r.column_count<=36,stretched:!1,hover:null,locked:null,candidate:null,pointed:null,unfolded:!1,hypothesis:0,alignment:"ribbons",alignedHeads:[],alignedTokens:!1,headsOff:[],method:"integrated_gradients",step:Yr(e.sampling?.steps??[]),filters:{...e.sampling?.filters??{}},merge:e.merges?.steps.length?1:0,mask:(e.masks.find(a=>a.terms.length>0)??e.masks[0])?.group??"decoder.self",hiddenTerms:[],present:!1,stack:e.positions[0]?.stack??"decoder",againstHead:null,compared:null}}function Pa({against:e,model:t},n){let o=e?.attention.find(({name:s})=>s===n.group.name);if(!e||!o||e.model.sha256!==t.sha256)return null;let r=Ke(e,[o]);return r&&Math.abs(r.delta)>Math.abs(n.delta)?r.place:n.place}function Da(e,t){let{protocol:n,hostname:o}=new URL(e),r=e.replace(/#.*/s,"")+t;return n==="file:"?{text:r,note:`For this computer. To share it, send the file and ${t}, which goes after its name.`}:n.startsWith("http")?["127.0.0.1","localhost","[::1]"].includes(o)?{text:r,note:"For this computer, while the page is served. To share it, save the page (--save)."}:{text:r,note:""}:{text:t,note:"A frame has no address: add this to a saved page's."}}async function Fa(e){try{return await navigator.clipboard.writeText(e),!0}catch{let t=document.body.appendChild(m("textarea",{readonly:!0},e));t.select();let n=document.execCommand("copy");return t.remove(),n}}function Jr(e){let t=m("span",{class:"small",role:"status"}),n=m("button",{type:"button",onclick:()=>{o()}},"Copy link");async function o(){let{text:r,note:s}=Da(location.href,e());if(await Fa(r))K(t,["Copied",s].filter(Boolean).join(". "));else{let i=m("input",{readonly:!0,"aria-label":"Link",value:r});K(t,"Copy it from here: ",i),i.select()}n.focus()}return{elements:[n,t],clear:()=>t.hasChildNodes()&&K(t)}}var es=`:root {
  color-scheme: light dark;
  --scheme: light;
  --page: #ffffff;
  --raised: #f4f5f7;
  --ink: #1b1e26;
  --muted: #5d6370;
  --rule: #d5d9e0;
  --accent: #b8420b;
  --hue: #2171b5;
  --minus: #8e2a9b;
  --tint: #1f9bff;
  --font: system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
}
@media (prefers-color-scheme: dark) {
  :root {
    --scheme: dark;
    --page: #14161b;
    --raised: #1f232b;
    --ink: #eceef2;
    --muted: #a3a9b6;
    --rule: #3a404b;
    --accent: #ff9457;
    --hue: #62aae2;
    --minus: #e38cf0;
  }
}
* {
  box-sizing: border-box;
}
[hidden] {
  display: none !important;
}
body {
  margin: 0;
  background: var(--page);
  color: var(--ink);
  font: 15px/1.5 var(--font);
}
header {
  display: flex;
  justify-content: space-between;
  gap: 8px 24px;
  padding: 18px 24px 14px;
  border-bottom: 1px solid var(--rule);
  overflow-wrap: anywhere;
}
main {
  padding: 0 24px 24px;
  max-width: 2400px;
}
h1 {
  font-size: 22px;
  line-height: 1.3;
  margin: 2px 0 4px;
}
header > div {
  min-width: 0;
}
header > div:first-child {
  flex: 1;
}
.tools {
  display: flex;
  flex-flow: row-reverse wrap;
  gap: 6px 10px;
  align-self: flex-start;
  align-items: center;
  flex: 0 1 auto;
}
.tools > .small {
  max-width: 36ch;
}
.tools button {
  white-space: nowrap;
}
.tools .small input {
  width: 20ch;
}
.sure {
  font-weight: 400;
  color: var(--muted);
  font-size: 0.82em;
  margin-left: 0.4em;
}
.box {
  margin-bottom: 12px;
}
.box .row {
  display: flex;
  flex-wrap: wrap;
  gap: 6px 12px;
  margin-bottom: 6px;
}
.box textarea {
  flex: 1 1 320px;
  min-width: 0;
  max-width: 1000px;
  font: inherit;
  color: inherit;
  background: var(--page);
  border: 1px solid var(--muted);
  border-radius: 6px;
  padding: 5px 10px;
  resize: vertical;
}
.box .controls {
  margin: 0;
}
.words button {
  padding: 0;
  border: 0;
  background: none;
  color: inherit;
  font: inherit;
  text-decoration: underline dotted 1px;
  text-underline-offset: 0.2em;
}
.blame {
  max-width: 1000px;
}
.pairs {
  margin: 8px 0;
  padding-left: 1.6em;
}
.pairs li {
  margin-bottom: 6px;
}
.pairs span {
  display: block;
}
.pairs .place {
  color: var(--muted);
  font-size: 0.85em;
}
button.main {
  background: var(--ink);
  border-color: var(--ink);
  color: var(--page);
}
button[aria-disabled="true"] {
  opacity: 0.6;
}
.problem:empty {
  display: none;
}
.problem {
  margin-top: 4px;
  font-weight: 600;
}
h2 {
  font-size: 18px;
  margin: 0;
}
h3 {
  font-size: 14px;
  margin: 0 0 2px;
}
p {
  margin: 0;
}
.small {
  font-size: 13px;
  color: var(--muted);
  font-weight: 400;
}
.note {
  max-width: 900px;
  margin-top: 4px;
}
button,
select,
input {
  font: inherit;
  color: inherit;
}
button {
  background: none;
  border: 1px solid var(--rule);
  border-radius: 6px;
  padding: 3px 12px;
  cursor: pointer;
}
button:hover {
  border-color: var(--muted);
}
:focus-visible {
  outline: 2px solid var(--accent);
  outline-offset: 2px;
}
input[type="checkbox"] {
  width: 17px;
  height: 17px;
}
@media (pointer: coarse) {
  input[type="checkbox"] {
    width: 24px;
    height: 24px;
  }
  .controls button,
  .control {
    min-height: 36px;
  }
}
select {
  max-width: 100%;
  min-width: 0;
  background: var(--page);
  border: 1px solid var(--rule);
  border-radius: 6px;
  padding: 3px 8px;
}
.card {
  border: 1px solid var(--rule);
  border-radius: 8px;
  padding: 12px 16px;
  margin-top: 14px;
  max-width: 760px;
  overflow-wrap: anywhere;
}
.card p + p {
  margin-top: 6px;
}
.card dl {
  display: grid;
  grid-template-columns: max-content 1fr;
  gap: 2px 16px;
  margin: 8px 0;
}
.card dt {
  color: var(--muted);
}
.card dd {
  margin: 0;
}
.card mark {
  background: var(--raised);
  color: inherit;
  font-weight: 600;
}
.legend {
  display: flex;
  flex-wrap: wrap;
  gap: 4px 18px;
  margin: 8px 0;
}
.legend span {
  display: inline-flex;
  align-items: center;
  gap: 7px;
}
.legend i {
  width: 22px;
  height: 13px;
  border: 1.5px solid var(--hue);
  border-radius: 3px;
}
.legend .winner {
  border: 3px solid var(--hue);
}
.legend .finished {
  border-radius: 7px;
}
.legend .plus {
  border: 0;
  background: color-mix(in srgb, var(--hue) 60%, var(--page));
}
.legend .minus {
  border: 0;
  background: color-mix(in srgb, var(--minus) 60%, var(--page));
}
.legend .dropped {
  border: 1px dashed var(--muted);
}
.compare h3 {
  margin-top: 14px;
}
.compare .card h3 {
  margin-top: 0;
}
.facts {
  margin: 4px 0 12px;
  padding-left: 20px;
  max-width: 900px;
}
.sides {
  display: grid;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 340px), 1fr));
  gap: 12px;
}
.sides .card {
  margin: 0;
  max-width: none;
}
.words {
  display: flex;
  flex-wrap: wrap;
  gap: 4px 10px;
  font-size: 17px;
}
.words > span {
  min-width: 0;
}
.words .small {
  display: block;
  line-height: 1.2;
}
.sides mark {
  background: none;
  color: inherit;
  font-weight: 600;
  text-decoration: underline 2px;
  text-underline-offset: 3px;
}
.next {
  width: 100%;
  max-width: 760px;
  border-collapse: collapse;
  table-layout: fixed;
}
.next th {
  text-align: left;
  font-weight: 400;
  overflow-wrap: anywhere;
}
.next thead th {
  color: var(--muted);
  font-size: 13px;
}
.next .bar {
  display: inline-block;
  height: 11px;
  background: var(--hue);
  margin-right: 7px;
}
.maps {
  display: grid;
  grid-template-columns: repeat(3, minmax(0, 1fr));
  gap: 0 24px;
}
@media (max-width: 880px) {
  .maps {
    grid-template-columns: minmax(0, 1fr);
  }
}
.head-grid {
  display: inline-grid;
  gap: 3px;
  align-items: center;
  margin: 4px 0 12px;
}
.head-grid button {
  padding: 0;
  width: 30px;
  height: 26px;
  font-size: 13px;
  border-radius: 4px;
}
.head-grid button[aria-pressed="true"] {
  background: var(--accent);
  border-color: var(--accent);
  color: var(--page);
}
.head-grid span {
  text-align: right;
  padding-right: 5px;
}
.grids {
  display: flex;
  flex-wrap: wrap;
  gap: 18px 40px;
}
.grids .group {
  min-width: 0;
  max-width: 100%;
}
.grids .stage {
  cursor: pointer;
}
.chips {
  display: flex;
  gap: 4px;
  padding-bottom: 6px;
}
.chips button {
  padding: 2px 8px;
  white-space: nowrap;
}
.chips canvas {
  display: block;
  margin: 4px auto;
}
.chips button[aria-pressed="true"] {
  background: var(--accent);
  border-color: var(--accent);
  color: var(--page);
}
.columns {
  display: flex;
  flex-wrap: wrap;
  gap: 18px 40px;
  margin-top: 14px;
}
.sampling .columns > div:last-child {
  width: 368px;
}
.columns > div {
  min-width: 0;
  max-width: 100%;
}
.sliders {
  display: grid;
  gap: 7px;
  margin-top: 6px;
  justify-items: start;
}
.slider {
  display: grid;
  grid-template-columns: 18px 142px 120px 44px;
  gap: 6px;
  align-items: center;
}
.slider input {
  margin: 0;
  width: 100%;
  accent-color: var(--hue);
}
.slider.off label,
.slider output {
  color: var(--muted);
}
.slider.off input[type="range"] {
  opacity: 0.35;
}
.columns .stage {
  cursor: default;
}
.cards {
  display: grid;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 380px), 1fr));
  gap: 12px;
}
.cards .card {
  margin: 0;
  max-width: none;
}
.cards .card:only-child {
  grid-column: 1 / -1;
}
.cards dd {
  display: flex;
  align-items: center;
}
.card .bar {
  display: inline-block;
  height: 11px;
  background: var(--hue);
  margin-right: 7px;
}
button:disabled {
  opacity: 0.4;
  cursor: default;
}
footer {
  margin-top: 28px;
  border-top: 1px solid var(--rule);
  padding-top: 10px;
  overflow-wrap: anywhere;
}
/* A slide: the page is laid out small and enlarged, see present.ts. */
.present header,
.present #panel {
  zoom: var(--zoom);
}
.present header {
  padding: 6px 14px 2px;
  border: 0;
}
.present main {
  padding: 0;
}
.present #panel {
  padding: 0 14px;
}
.present .tabs {
  zoom: calc(var(--zoom) * 0.75);
  margin: 0 18px 4px;
}
.present h1 {
  font-size: 18px;
  margin: 0;
}
.present h2 {
  font-size: 16px;
}
.present .fact {
  font-size: 13px;
  margin: 0 0 4px;
}
.present header > div:first-child {
  display: flex;
  flex-wrap: wrap;
  align-items: baseline;
  gap: 0 16px;
}
.present .input[hidden] {
  display: block !important; /* a live page has its input in a box, which a slide does not need */
}
.present .stage {
  margin: 0 auto;
}
.present .columns {
  margin-top: 4px;
}
.present .columns .stage {
  margin: 0;
}
.present .readout {
  min-height: 0;
  padding: 3px 10px;
  margin-bottom: 4px;
  font-size: 13px;
}
.present .heads {
  grid-template-columns: minmax(0, 1fr);
}
.present header .small,
.present .tools > :not(.presenter),
.present .note,
.present .box,
.present .saves,
.present .overview,
.present .key,
.present .legend,
.present .slide-hidden,
.present #more-views,
.present .chips canvas,
.present .beam > .fact,
.present .sampling > .readout,
.present #panel p.small,
.present .detail > .controls,
.present .beam > .controls,
.present .alignment > .controls,
.present footer {
  display: none;
}
.present .presenter {
  position: absolute;
  top: 4px;
  right: 8px;
  border: 0;
  padding: 0 6px;
  opacity: 0.6;
}
@media (max-width: 760px) {
  header {
    padding: 12px 14px 10px;
  }
  main {
    padding: 0 14px 18px;
  }
  h1 {
    font-size: 18px;
  }
  header {
    flex-direction: column;
  }
  .tools {
    flex-direction: row;
  }
}
.switches {
  display: inline-grid;
  grid-template-columns: auto repeat(var(--heads), minmax(14px, max(84px, 6vw)));
  gap: 4px;
  align-items: center;
  width: 100%;
}
.switches > span {
  text-align: center;
  white-space: nowrap;
}
.switch {
  display: flex;
  align-items: center;
  justify-content: space-between;
  gap: 4px;
  min-width: 0;
  min-height: 40px;
  padding: 2px 8px;
  background: var(--effect);
  border: 1px solid var(--rule);
  border-radius: 8px;
  color: var(--ink);
  font-size: 14px;
  font-variant-numeric: tabular-nums;
  overflow: hidden;
}
.switch i {
  flex: none;
  width: 20px;
  height: 12px;
  border-radius: 6px;
  border: 1.5px solid var(--ink);
  background: radial-gradient(circle at calc(100% - 4.5px) 50%, var(--ink) 3px, transparent 3.6px);
}
.switch[aria-checked="false"] {
  outline: 3px solid var(--accent);
  outline-offset: -2px;
  background: var(--page);
}
.switch[aria-checked="false"] i {
  border-color: var(--accent);
  background: radial-gradient(circle at 4.5px 50%, var(--accent) 3px, transparent 3.6px);
}
.switches.dense .switch {
  min-height: 26px;
  padding: 0;
  border-radius: 4px;
}
.switches.dense .switch i,
.switches.dense .switch > span {
  display: none;
}
.break .grids {
  gap: 12px 32px;
}
.break .readout {
  margin-top: 12px;
}
.break .controls button:disabled {
  color: var(--muted);
  opacity: 0.6;
}
.result {
  position: sticky;
  bottom: 8px;
  max-width: 980px;
  max-height: 40vh;
  overflow: auto;
  background: var(--page);
}
@media (max-width: 760px) {
  /* Above the switches, where it covers none of the last. */
  .break {
    display: flex;
    flex-direction: column;
  }
  .break .grids,
  .break .readout,
  .break .result ~ * {
    order: 1;
  }
  .result {
    top: 0;
    bottom: auto;
    width: 100%;
    margin: 0 0 12px;
    padding: 8px 12px;
    min-height: 120px;
    max-height: 34vh;
    z-index: 1;
  }
  .switch {
    scroll-margin-top: 36vh;
  }
}
.present .result {
  position: static;
  max-height: none;
  margin-top: 0;
  padding: 6px 12px;
}
.present .break .grids {
  flex-wrap: nowrap;
  gap: 8px 20px;
}
.present .break .group {
  flex: 1 1 0;
  max-width: 420px;
}
.present .break .switches {
  grid-template-columns: auto repeat(var(--heads), minmax(0, 1fr));
  gap: 3px;
}
.present .switch {
  min-height: 26px;
  padding: 0 3px;
  font-size: 12px;
}
.present .switch i {
  width: 15px;
  height: 10px;
}
.present .break .readout {
  margin-top: 6px;
}
.present .break .controls {
  margin-bottom: 4px;
  font-size: 13px;
}
.present .result p + p {
  margin-top: 2px;
}
.result .retyped {
  font-size: 1.35em;
  line-height: 1.5;
  white-space: pre-wrap;
}
.result del {
  color: var(--muted);
  text-decoration: line-through 2px;
}
.result ins {
  color: var(--minus);
  font-weight: 600;
  text-decoration: none;
}
.result .effect {
  font-weight: 600;
}
.result .word {
  display: inline-block;
  margin: 2px 3px 0 0;
  padding: 1px 5px;
  border-radius: 4px;
}
@media (prefers-reduced-motion: no-preference) {
  .result ins {
    animation: retype 0.5s;
  }
  @keyframes retype {
    from {
      opacity: 0;
    }
  }
}
`;var ts=`/* The tabs, the story and the heads: what the page of \`regard look\` and that of an exported model have in common. */
.saves {
  display: inline-flex;
}
.saves button {
  margin-left: -1px;
  border-radius: 0 6px 6px 0;
}
.saves button:first-child {
  margin: 0;
  border-radius: 6px 0 0 6px;
}
.fact {
  font-size: 15px;
  margin: 2px 0 10px;
}
.tabs {
  display: flex;
  gap: 4px;
  margin: 0 0 18px;
  border-bottom: 1px solid var(--rule);
  flex-wrap: wrap;
}
.tabs button {
  border: 0;
  border-bottom: 3px solid transparent;
  border-radius: 0;
  padding: 10px 12px 7px;
  color: var(--muted);
  white-space: nowrap;
}
.tabs button:focus-visible {
  outline-offset: -2px;
}
.tabs button[aria-selected="true"] {
  color: var(--ink);
  border-bottom-color: var(--accent);
  font-weight: 600;
}
#tab-more::after {
  content: " ▾";
}
.tabs + #more-views {
  margin-top: -18px; /* the two rows touch */
  font-size: 14px;
}
.choice {
  display: inline-flex;
}
.choice button {
  border-radius: 0;
  margin-left: -1px;
}
.choice button:first-child {
  border-radius: 6px 0 0 6px;
  margin: 0;
}
.choice button:last-child {
  border-radius: 0 6px 6px 0;
}
.choice button[aria-pressed="true"] {
  background: var(--ink);
  color: var(--page);
  border-color: var(--ink);
}
.controls {
  display: flex;
  flex-wrap: wrap;
  gap: 8px 18px;
  align-items: center;
  margin-bottom: 12px;
}
.control {
  max-width: 100%;
  display: inline-flex;
  gap: 7px;
  align-items: center;
}
.control input {
  accent-color: var(--hue);
  margin: 0;
}
.scroller {
  overflow-x: auto;
  padding: 2px;
}
.stage {
  position: relative;
  touch-action: pan-x pan-y;
  cursor: crosshair;
  max-width: none;
}
.stage:focus-visible {
  outline-offset: -2px;
} /* a scroller would cut it off */
.stage canvas {
  position: absolute;
  inset: 0;
  display: block;
}
.overlay {
  pointer-events: none;
}
.heads {
  display: grid;
  grid-template-columns: minmax(200px, 300px) minmax(0, 1fr);
  gap: 36px;
  align-items: start;
}
.overview {
  min-width: 0;
  display: grid;
  gap: 14px;
}
.overview .stage,
.beam .stage {
  cursor: pointer;
}
.overview h2 {
  font-size: 14px;
  margin-bottom: 2px;
}
.overview h2 span {
  display: block;
  line-height: 1.2;
}
.detail {
  min-width: 0;
}
.stage-row {
  display: flex;
  gap: 16px;
  align-items: flex-start;
}
.stage-row .scroller {
  min-width: 0;
}
.lens {
  flex: none;
}
.readout {
  background: var(--raised);
  border-radius: 6px;
  padding: 9px 13px;
  min-height: 63px; /* two lines: a longer sentence does not move what is below */
  margin-bottom: 10px;
  overflow-wrap: anywhere;
}
.key {
  display: flex;
  gap: 12px;
  align-items: center;
  margin: 10px 0 6px;
  flex-wrap: wrap;
}
.stage svg {
  position: absolute;
  inset: 0;
  display: block;
}
.story .caption {
  font-size: 19px;
  min-height: 3em;
  margin: 0 0 8px;
}
.story .stage {
  cursor: default;
}
.telling,
.aside {
  min-width: 0;
}
@media (min-width: 1500px) {
  :root:not(.present) .story {
    display: grid;
    grid-template-columns: minmax(0, 1fr) minmax(0, 560px);
    gap: 0 40px;
  }
}
@media (min-width: 1180px) and (max-width: 1499px) {
  :root:not(.present) .small-picture {
    display: grid;
    grid-template-columns: minmax(0, 1fr) 340px;
    gap: 0 32px;
  }
  .small-picture .strip {
    gap: 5px;
  }
  .small-picture .strip > button,
  .small-picture .strip > div {
    min-width: 88px;
    padding: 6px 8px;
  }
}
.story > :not(.telling, .aside) {
  grid-column: 1 / -1;
}
.aside .strip:first-child {
  margin-top: 12px;
}
.player {
  display: flex;
  gap: 6px;
}
.player button,
.story .choice button {
  min-width: 44px;
  min-height: 44px;
}
.player .play {
  min-width: 88px;
  background: var(--ink);
  color: var(--page);
}
.strip {
  display: flex;
  flex-wrap: wrap;
  gap: 8px;
  align-items: center;
  margin: 16px 0 22px;
}
.strip > button,
.strip > div {
  display: grid;
  border: 1px solid var(--rule);
  border-radius: 8px;
  padding: 6px 16px;
  min-width: 96px;
  min-height: 44px;
  text-align: center;
  line-height: 1.35;
}
.findings {
  list-style: none;
  margin: 8px 0 16px;
  padding: 0;
  display: grid;
  gap: 8px;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 700px), 1fr));
}
.findings li {
  display: flex;
  flex-wrap: wrap;
  gap: 6px 10px;
  align-items: center;
  padding: 8px 14px;
  border-left: 3px solid var(--hue);
  background: var(--raised);
  border-radius: 0 6px 6px 0;
  overflow-wrap: anywhere;
}
.findings span {
  flex: 1 1 300px;
  min-width: 0;
}
.transcript {
  margin-bottom: 12px;
  overflow-wrap: anywhere;
}
.transcript summary {
  cursor: pointer;
  min-height: 44px;
  line-height: 44px;
}
@media (max-width: 760px) {
  .tabs {
    gap: 0;
  }
  .tabs button {
    padding: 10px 9px 7px;
  }
  .heads {
    grid-template-columns: minmax(0, 1fr);
    gap: 18px;
  }
  .heads .detail {
    order: -1;
  } /* the map first: it opens at the most telling head */
  .readout {
    min-height: 108px;
  }
}
`;function os(e,t){let n=e.filter(c=>c.level===2),o=n.length>1&&n.length<e.length,r=n[0]?.name??"",s=({name:c,title:d})=>({id:c,title:d,open:()=>t(c)}),i={id:"more",title:"More",open:()=>t(r)},a=ns("Views","panel",o?[...e.filter(c=>c.level!==2).map(s),i]:e.map(s)),l=ns("More views","panel",o?n.map(s):[]);return l.element.id="more-views",a.button("more")?.setAttribute("aria-controls","more-views"),{elements:[a.element,l.element],mark(c){let d=o&&n.some(u=>u.name===c);d&&(r=c),l.element.hidden=!d,a.mark(d?"more":c),l.mark(c)}}}function ns(e,t,n){let o=n.map(({id:s,title:i,open:a})=>m("button",{type:"button",role:"tab",id:`tab-${s}`,"aria-controls":t,onclick:a},i)),r=m("div",{class:"tabs",role:"tablist","aria-label":e},...o);return r.addEventListener("keydown",s=>{let i=o.indexOf(s.target),a=n.length-1,c={ArrowLeft:i>0?i-1:a,ArrowRight:i<a?i+1:0,Home:0,End:a}[s.key];i<0||c===void 0||(s.preventDefault(),n[c].open(),o[c].focus())}),{element:r,button:s=>o[n.findIndex(i=>i.id===s)],mark:s=>n.forEach((i,a)=>{o[a].setAttribute("aria-selected",String(i.id===s)),o[a].tabIndex=i.id===s?0:-1,i.id===s&&(r.scrollLeft=o[a].offsetLeft-r.offsetLeft-40)})}}function Lt([e,t],[n,o]){let r=(e+n)/2;return`M${e},${t}C${r},${t},${r},${o},${n},${o}`}function kn([e,t],[n,o]){let r=(t+o)/2;return`M${e},${t}C${e},${r},${n},${r},${n},${o}`}var lo=16,co=18,vn=170,Oa=.75;function is(e,t,n){let o=u=>Math.min(160,Math.max(14,ge(u,lo,n.font))),r=u=>{let h=u.map(o),p=Math.min(t,1500)-h.reduce((g,w)=>g+w,20),f=Math.max(co,Math.min(180,p/Math.max(1,u.length-1))),b=8;return h.map(g=>(b+=g+f,[b-f-g/2,g+f-co]))},s=u=>u.length?u[u.length-1][0]+u[u.length-1][1]/2:0,[i,a]=[r(e.rows.map(u=>u.label)),r(e.columns.map(u=>u.label))],l=Math.max(s(i),s(a))+12;if(l<=t){let u=h=>h.map(([p,f])=>[p+(l-s(h)-12)/2,f]);return{upright:!0,rows:u(i),columns:u(a),width:l,height:vn+60}}let c=30,d=u=>Array.from({length:u},(h,p)=>[18+p*c,20]);return{upright:!1,rows:d(e.rows.length),columns:d(e.columns.length),width:Math.min(t,640),height:24+c*Math.max(e.rows.length,e.columns.length)}}function uo(e,t,n,o,r){let s=Math.min(130,n.width*.3),i=d=>n.upright?[n.columns[d][0],38]:[s,n.columns[d][0]],a=d=>n.upright?[n.rows[d][0],vn+22]:[n.width-s,n.rows[d][0]],l=(d,u)=>{for(let{column:h,weight:p}of rs(t,d)){let f=(n.upright?kn:Lt)(i(h),a(d));e.path(f,{stroke:u,width:1+13*p,opacity:.2+.6*p})}};t.rows.forEach((d,u)=>u!==r&&l(u,r===null?o.hue:o.rule)),r!==null&&l(r,o.accent);let c=new Set(r===null?[]:rs(t,r).map(d=>d.column));t.columns.forEach((d,u)=>{let[h,p]=n.upright?[n.columns[u][0],24]:[s-8,n.columns[u][0]],f=c.has(u)?o.accent:o.ink;ss(e,o,d.label,h,p,f,n.upright?"middle":"end",n.upright?160:s-10)}),t.rows.forEach((d,u)=>{let[h,p]=n.upright?[n.rows[u][0],vn+38]:[n.width-s+8,n.rows[u][0]],f=u===r?o.accent:o.ink;ss(e,o,d.label,h,p,f,n.upright?"middle":"start",n.upright?160:s-10)})}function rs(e,t){let n=0;return We(e,t,6).filter(({weight:o})=>{let r=o>=.03&&n<Oa;return n+=o,r})}function as(e,t,n){if(!(e.upright?n>vn*.5:t>e.width*.5))return null;let r=e.upright?t:n,s=e.rows.findIndex(([i,a])=>Math.abs(r-i)<=a/2+co/2);return s<0?null:s}function ss(e,t,n,o,r,s,i,a){e.text(o,r,me(n,lo,t.font,a),{fill:s,size:lo,anchor:i})}var ls=200,cs={name:"alignment",title:"Alignment",level:2,applies:e=>e.hypotheses.length>0&&(e.sequences.source?.length??0)>0,mount:Ia};function Ia({doc:e,store:t,blobs:n}){let o=m("p",{class:"fact"}),r=m("div",{class:"controls"}),s=m("div",{class:"slide-hidden"}),i=new ce("Alignment. Arrow keys move along the generated words, Enter pins, Escape releases."),a=m("p",{class:"readout",role:"status","aria-live":"polite"}),l=m("p",{class:"small"}),c=m("section",{class:"alignment","aria-label":"Alignment"},m("h2",{},"Which source words each word comes from"),o,r,a,m("div",{class:"scroller"},i.element),s,l),d=null,u=null,h=null,p=()=>t.state.locked??t.state.hover,f=$=>{let{x:M,y:T}=i.locate($);if(!d)return null;if(t.state.alignment==="matrix")return h&&Ue(d,h,M,T);let A=u&&as(u,M,T);return A===null?null:{row:A,column:null}};i.element.addEventListener("pointermove",$=>{let[M,T]=[f($),t.state.hover];(M?.row!==T?.row||M?.column!==T?.column)&&t.set({hover:M})}),i.element.addEventListener("pointerleave",()=>t.set({hover:null})),i.element.addEventListener("click",$=>{let M=f($);t.set({locked:M&&M.row===t.state.locked?.row?null:M})}),i.element.addEventListener("keydown",$=>{if(!d?.rows.length)return;if($.key==="Escape")return t.set({locked:null});let M={ArrowLeft:-1,ArrowUp:-1,ArrowRight:1,ArrowDown:1,Enter:0}[$.key];if(M===void 0)return;$.preventDefault();let T=p()===null?0:Math.max(0,Math.min(d.rows.length-1,p().row+M));t.set({locked:{row:T,column:null},hover:null})});function b($){let{state:M}=t,T=e.hypotheses[M.hypothesis]??e.hypotheses[0],A=$.size>0&&[...$].every(E=>E==="hover"||E==="locked"),k=n.read(T.cross);if(!A){let E=Ba(M,T,k);o.textContent=Na(E,M),K(r,...x(T)),K(s,k?L(k,E):null),d=k?w(T,k,E,M):null,l.textContent="Attention is not an explanation by itself: it shows where the decoder attended, not why. Special tokens are left out."+(M.alignment==="ribbons"?" A word shows its strongest weights until they cover 75 %; weights below 0.03 are left out.":"")}if(!d){a.textContent="Reading the attention …";return}g(d,A);let v=Fe(p(),d);a.textContent=v?Wa(d,v):Ee("a generated word","to see where it comes from")}function g($,M){let T=ae(),{state:A}=t,k=Math.max(260,c.clientWidth),v=Fe(p(),$);if(A.alignment==="ribbons"){u=is($,k-6,T),i.draw(u.width,u.height,E=>uo(E,$,u,T,v?.row??null)),i.drawOverlay(u.width,u.height,()=>{});return}h=He($,k,T,Xe(i.element,44*$.rows.length)),M||i.draw(h.width,h.height,E=>Ae(E,$,h,T)),i.drawOverlay(h.width,h.height,E=>{v&&Ze(E,$,h,T,v,A.locked!==null)})}function w($,M,T,A){let[,k,v,E]=M.shape,S=M.codes,O=new Float32Array(v*E);for(let[P,y]of T){let C=(P*k+y)*v*E;for(let R=0;R<O.length;R++)O[R]+=Ie[S[C+R]]/T.length}let H=!A.alignedTokens;return je(Uint8Array.from(O,ft),E,fe($.tokens.slice(0,v),H,!1),fe(e.sequences.source.slice(0,E),H,!1))}function x($){let{state:M}=t,T={hover:null,locked:null},A=e.hypotheses.map((k,v)=>[String(v),`${v+1}. ${Y(k.text,60)} (${k.score.toFixed(2)})`]);return[Te("Drawing",[["ribbons","Ribbons"],["matrix","Matrix"]],M.alignment,k=>t.set({alignment:k,...T})),Me("Tokens instead of words",M.alignedTokens,k=>t.set({alignedTokens:k,...T})),A.length>1?Se("Hypothesis",A,String(M.hypothesis),k=>t.set({hypothesis:Number(k),...T})):null,he(()=>`alignment.${e.hypotheses.indexOf($)}`,()=>M.alignment==="ribbons"?u:h,(k,v)=>{d&&(M.alignment==="ribbons"?uo(k,d,u,v,p()?.row??null):Ae(k,d,h,v))})]}function L($,M){let[T,A]=$.shape,k=new Set(M.map(([H,P])=>`${H}.${P}`)),v=H=>t.set({alignedHeads:H}),E=m("div",{class:"head-grid",role:"group","aria-label":"Average of these heads"});if(E.style.gridTemplateColumns=`auto repeat(${Math.min(A,ls)}, 30px)`,T*A<=ls)for(let H=0;H<T;H++){E.append(m("span",{class:"small"},`layer ${H+1}`));for(let P=0;P<A;P++){let y=`${H}.${P}`,C=()=>{let I=k.has(y)?[...k].filter(G=>G!==y):[...k,y];v(I)},R={"aria-pressed":String(k.has(y)),"aria-label":`Layer ${H+1}, head ${P+1}`,onclick:C};E.append(m("button",{type:"button",...R},String(P+1)))}}let S=Array.from({length:T*A},(H,P)=>`${Math.floor(P/A)}.${P%A}`),O=m("div",{class:"controls"},m("button",{type:"button",onclick:()=>v([])},"Heads that align best"),m("button",{type:"button",onclick:()=>v(S)},"All heads"));return m("div",{},m("h3",{},"Average of these heads"),m("div",{class:"scroller"},E),O)}return{element:c,update:b}}function Ba(e,t,n){if(!n)return[];let[o,r]=n.shape,s=e.alignedHeads.map(i=>i.split(".").map(Number)).filter(([i,a])=>i<o&&a<r);return s.length?s:t.link_heads}function Na(e,t){let n=e.map(([r,s])=>`layer ${r+1}, head ${s+1}`),o=t.alignedHeads.length===0;return e.length===1?o?`The head that aligns best: ${n[0]}.`:`One head: ${n[0]}.`:o?`Average of the ${e.length} heads that align best: ${n.join("; ")}.`:`Average of ${e.length} chosen heads.`}function Wa(e,t){let n=We(e,t.row,3).filter(s=>s.weight>=.02).map(s=>`${X(e.columns[s.column].label)} ${ie(s.weight)}`),o=e.hidden(t.row),r=o>=.01?` Special tokens hold ${ie(o)}.`:"";return`Generating ${X(e.rows[t.row].label)}, the decoder attends to ${n.join(", ")||"no word in particular"}.${r}`}var us={occlusion:{title:"Occlusion",says:"Change of the logit if the token is there, against the mean embedding in its place."},gradient_x_input:{title:"Gradient × input",says:"Gradient of the logit times the embedding's distance from the mean embedding."},integrated_gradients:{title:"Integrated gradients",says:"The same gradient, averaged on the way from the mean embedding: the numbers of a row sum to the difference of the logits."}},ps={name:"attribution",title:"Attribution",level:2,applies:e=>(e.attribution?.outputs.length??0)>0,mount:Ua};function Ua({doc:e,store:t,blobs:n}){let o=e.attribution,r=m("p",{class:"fact"}),s=m("div",{class:"controls"}),i=m("p",{class:"readout",role:"status","aria-live":"polite"}),a=new ce("Contributions of input tokens to outputs. Arrow keys move, Escape releases."),l=m("p",{class:"small"}),c=m("section",{class:"attribution","aria-label":"Attribution"},m("h2",{},"What each input token contributed"),r,s,i,m("div",{class:"scroller"},a.element),m("div",{class:"legend small"},m("span",{},m("i",{class:"plus"}),"makes the output likelier"),m("span",{},m("i",{class:"minus"}),"makes it less likely"),m("span",{},"rows: outputs; columns: what the model read; numbers: change of the logit")),l),d=null,u=null,h=()=>t.state.locked??t.state.hover,p=b=>{let{x:g,y:w}=a.locate(b);return d&&u&&Ue(d,u,g,w)};a.element.addEventListener("pointermove",b=>{let[g,w]=[p(b),t.state.hover];(g?.row!==w?.row||g?.column!==w?.column)&&t.set({hover:g})}),a.element.addEventListener("pointerleave",()=>t.set({hover:null})),a.element.addEventListener("click",b=>t.set({locked:t.state.locked?null:p(b)})),a.element.addEventListener("keydown",b=>{if(b.key==="Escape")return t.set({locked:null});let w={ArrowUp:[-1,0],ArrowDown:[1,0],ArrowLeft:[0,-1],ArrowRight:[0,1]}[b.key];if(!w||!d)return;b.preventDefault();let x=(M,T)=>Math.max(0,Math.min(T-1,M)),L=h()??{row:-w[0],column:-w[1]},$={row:x(L.row+w[0],d.rows.length),column:x((L.column??0)+w[1],d.columns.length)};t.set({locked:$,hover:null})});function f(b){let{state:g}=t,w=ae(),x=o.methods[g.method]?g.method:Object.keys(o.methods)[0],L=Object.keys(o.methods).map(k=>[k,us[k]?.title??k]);K(s,Te("Method",L,x,k=>t.set({method:k})),he(()=>`attribution.${x}`,()=>u,k=>d&&ms(k,d,u,w,null)));let $=n.read(o.methods[x]);if(!$){i.textContent="Reading the numbers …";return}d=Ga(e,o,$.codes),u=He(d,Math.max(260,c.clientWidth-6),w,Xe(a.element));let M=Fe(h(),d);a.describe(u.left,u.top,u.cell),a.draw(u.width,u.height,k=>ms(k,d,u,w,M)),a.drawOverlay(u.width,u.height,()=>{});let T=[us[x]?.says,x==="integrated_gradients"&&Va(o)],A="Special tokens are the same in the input and in the baseline, so their columns are empty.";l.textContent=[...T,d.columns.some(k=>k.special)&&A].filter(Boolean).join(" "),r.textContent=qa(d),i.textContent=M?ja(d,o,M):Ee("a cell","to read a contribution")}return{element:c,update:f}}function Ga(e,t,n){let o=c=>rt(c).map((d,u)=>({label:d,special:c[u].role==="special",members:[u]})),r=o((e.sequences.source??[]).slice(0,t.source_columns)),s=o((e.sequences.target??[]).slice(0,t.target_columns)),i=o(e.sequences.target??e.sequences.source??[]),a=t.outputs.map(c=>c===null?{label:"label",special:!1,members:[]}:i[c]),l=n.reduce((c,d)=>Math.max(c,Math.abs(d)),1e-9);return{rows:a,columns:[...r,...s],values:n,largest:l,sourceColumns:r.length}}function ms(e,t,n,o,r){let{cell:s,left:i,top:a}=n,[l,c]=[t.rows.length,t.columns.length],d=new Uint32Array(l*c);for(let h=0;h<d.length;h++){let p=t.values[h];d[h]=Qe(o.page,p<0?o.minus:o.hue,za(Math.abs(p)/t.largest))}if(e.pixels(i,a,c*s,l*s,{width:c,height:l,data:d}),e.rect(i-.5,a-.5,c*s+1,l*s+1,{stroke:o.rule}),t.sourceColumns>0&&t.sourceColumns<c&&e.path(`M${i+t.sourceColumns*s} ${a-8}V${a+l*s}`,{stroke:o.ink,width:2}),Ot(e,t,n,o,r),!r)return;let u=a+r.row*s;if(e.rect(i,u,c*s,s,{stroke:o.accent,width:1.5}),r.column!==null&&e.rect(i+r.column*s,u,s,s,{stroke:o.accent,width:2.5}),!(s<30))for(let h=0;h<c;h++){let p=t.values[r.row*c+h];if(Math.abs(p)<.05)continue;let f=p.toFixed(1).replace("-","−");e.text(i+(h+.5)*s,u+s/2,f,{fill:o.ink,size:11,anchor:"middle"})}}function za(e){return e<.002?0:.12+.73*Math.sqrt(e)}function qa(e){let t=e.columns.length,n=e.sourceColumns||t,o=null;if(e.rows.forEach((l,c)=>{for(let d=0;d<n;d++){let u=e.values[c*t+d];!l.special&&u>(o?.value??0)&&(o={row:c,column:d,value:u})}}),o===null)return"";let{row:r,column:s,value:i}=o;return`The ${e.sourceColumns?"source token":"token"} that contributes most: ${X(e.columns[s].label)} makes ${X(e.rows[r].label)} likelier (+${i.toFixed(2)} logit).`}function ja(e,t,n){let o=e.columns.length,r=c=>e.values[n.row*o+c],s=X(e.rows[n.row].label),a=Array.from({length:o},(c,d)=>d).sort((c,d)=>Math.abs(r(d))-Math.abs(r(c))).slice(0,3).map(c=>`${X(e.columns[c].label)} ${ds(r(c))}`),l=`Its logit is ${t.logits[n.row].toFixed(2)}, without any input ${t.baseline_logits[n.row].toFixed(2)}.`;return n.column===null?`${s}: most by ${a.join(", ")}. ${l}`:`${X(e.columns[n.column].label)} contributes ${ds(r(n.column))} to ${s}. Most: ${a.join(", ")}. ${l}`}function Va(e){return`Here within ${(Math.max(...e.completeness)*100).toFixed(1)} % (${e.steps} steps).`}function ds(e){return(e<0?"−":"+")+Math.abs(e).toFixed(2)}var[Ka,Xa]=[78,140],Qa=16,nt=38,Ya=44,mo=8,Za=26;function Ve(e,t){return e.status[t]!=="dropped"}function $n(e,t,n=0){let o=Math.floor(Math.max(Ka,Math.min(Xa,(n-16)/(t+1)))),r=o-Qa,s=Array.from({length:t+1},()=>[]);e.step.forEach((d,u)=>{d<=t&&s[d].push(u)});let i=d=>e.total[d]??-1/0,a=new Map,l=0;s.forEach((d,u)=>{d.sort((p,f)=>Number(Ve(e,f))-Number(Ve(e,p))||i(f)-i(p));let h=Za;d.forEach((p,f)=>{f>0&&!Ve(e,p)&&Ve(e,d[f-1])&&(h+=8),a.set(p,{candidate:p,x:mo+u*o,y:h,rank:f+1}),h+=Ya}),l=Math.max(l,h)});let c=mo+t*o+r+8;return{nodes:a,steps:s,lastStep:t,step:o,node:r,width:c,height:l+4}}function zt(e,t){let n=[t];for(;e.step[n[0]]>0;)n.unshift(e.parent[n[0]]);return n}function hs(e,t,n){let o=Math.floor((t-mo)/e.step);return e.steps[o]?.find(s=>{let i=e.nodes.get(s);return t>=i.x&&t<=i.x+e.node&&n>=i.y&&n<=i.y+nt})??null}function fs(e,t,n,o){let r=e.step[n],s=t.steps[r],i=s.indexOf(n);return o==="ArrowUp"?s[Math.max(0,i-1)]:o==="ArrowDown"?s[Math.min(s.length-1,i+1)]:o==="ArrowLeft"?e.parent[n]:o==="ArrowRight"?t.steps[r+1]?.find(a=>e.parent[a]===n)??n:null}var po=new WeakMap;function ho(e,t,n,o,r){let s=new Set(t.lineage);for(let a=1;a<=o.lastStep;a++)e.text(o.nodes.get(0).x+a*o.step+o.node/2,10,String(a),{fill:r.muted,size:11,anchor:"middle"});let i=[...o.nodes.keys()].sort((a,l)=>Number(s.has(a))-Number(s.has(l))||Number(Ve(t,a))-Number(Ve(t,l)));for(let a of i){if(a===0)continue;let l=Ve(t,a),c=s.has(a)?{stroke:r.hue,width:3.5}:l?{stroke:r.hue,width:1.2,opacity:.75}:{stroke:r.muted,width:.8,opacity:.35};e.path(xs(t,o,a),c)}for(let a of i)bs(e,t,n,o,r,a,s.has(a))}function gs(e,t,n,o,r,s){let i=zt(t,s);for(let a of i.slice(1))e.path(xs(t,o,a),{stroke:r.accent,width:2});for(let a of i){bs(e,t,n,o,r,a,t.lineage.includes(a));let l=o.nodes.get(a);e.rect(l.x-1,l.y-1,o.node+2,nt+2,{stroke:r.accent,width:a===s?2.5:1.2,radius:t.status[a]==="finished"?12:5})}}function bs(e,t,n,o,r,s,i){let{x:a,y:l}=o.nodes.get(s),c=Ve(t,s);e.rect(a,l,o.node,nt,{fill:r.page,stroke:c?r.hue:r.muted,width:i?3:c?1.2:.8,dash:c?void 0:"3 3",radius:t.status[s]==="finished"?nt/2:4});let d=c?r.ink:r.muted,u=s===0?"start":Ja(t,n,s),h=me(u,12,r.font,o.node-8),p=s===0;if(e.text(a+o.node/2,l+(p?nt/2:12),h,{fill:d,size:12,anchor:"middle",weight:i?700:400}),p)return;let f=Math.exp(t.logprob[s]??-1/0);e.text(a+o.node/2,l+25,Z(f),{fill:r.muted,size:11,anchor:"middle"});let b={x:a+8,y:l+nt-6,width:o.node-16};e.rect(b.x,b.y,b.width,3,{fill:r.rule}),e.rect(b.x,b.y,Math.max(1,f*b.width),3,{fill:c?r.hue:r.muted})}function fo(e,t,n,o=400){let r=n.slice(1).map(s=>t[e.token[s]]);return ws(t)?we(r,o):we(r.map(s=>s&&{...s,text:`${s.text} `}),o)}function Ja(e,t,n){let o=t[e.token[n]],r=e.step[n]>1&&o?.role==="text"&&!o.text.startsWith(" ");return ws(t)?de(o,r,12):de(o,!1,12)}function ws(e){return po.has(e)||po.set(e,Object.values(e).some(t=>/\s/.test(t.text))),po.get(e)}function xs(e,t,n){let[o,r]=[t.nodes.get(e.parent[n]),t.nodes.get(n)],s=nt/2;return Lt([o.x+t.node,o.y+s],[r.x,r.y+s])}var ys={name:"search",title:"Search",applies:e=>e.search!==null&&e.search.step.length>1,mount:el};function el({doc:e,store:t,live:n}){let o=e.search,r={...e.vocabulary},s=new ke(async k=>{let v=o.continuations[k];if(v)return v;let E=await n.continue(Number(k));return Object.assign(r,E.vocabulary),E.continuation},()=>t.notify()),i=m("p",{class:"fact"}),a=m("div",{class:"controls"}),l=m("div",{class:"stage",tabindex:0,role:"application","aria-label":"Candidates of the search by step and rank. Arrow keys move, Escape leaves."}),c=m("div",{class:"scroller"},l),d=m("p",{class:"readout",role:"status","aria-live":"polite"}),u=m("div",{class:"card"}),h=m("section",{class:"beam","aria-label":"Beam search"},m("h2",{},nl(o)),i,a,d,c,il(),u),p=$n(o,o.winner_step),f=null,b=null,g=k=>{let v=l.getBoundingClientRect();return hs(p,(k.clientX-v.left)/Ne(),(k.clientY-v.top)/Ne())};l.addEventListener("pointermove",k=>t.set({pointed:g(k)})),l.addEventListener("pointerleave",()=>t.set({pointed:null})),l.addEventListener("click",k=>t.set({candidate:g(k)})),l.addEventListener("keydown",k=>{if(k.key==="Escape")return t.set({candidate:null});if(!k.key.startsWith("Arrow"))return;k.preventDefault();let v=t.state.candidate,E=v===null||!p.nodes.has(v)?0:fs(o,p,v,k.key);if(E===null)return;t.set({candidate:E,pointed:null});let S=p.nodes.get(E);(S.x<c.scrollLeft||S.x+p.node>c.scrollLeft+c.clientWidth)&&(c.scrollLeft=S.x-c.clientWidth/2)});function w(k){let{state:v}=t,E=ae();if(k.size===0||k.has("unfolded")){p=$n(o,v.unfolded?o.last_step:o.winner_step,h.clientWidth),l.dataset.step=String(p.step);let H=new ot(p.width,p.height,E.font);ho(H,o,r,p,E),f?.remove(),f=H.element,f.setAttribute("aria-hidden","true"),l.style.width=`${p.width}px`,l.style.height=`${p.height}px`,l.prepend(f),i.textContent=ol(o),K(a,x(),L())}let S=v.pointed??v.candidate,O=new ot(p.width,p.height,E.font);for(let H of new Set([v.candidate,v.pointed]))H!==null&&p.nodes.has(H)&&gs(O,o,r,p,E,H);b?.remove(),b=O.element,b.setAttribute("aria-hidden","true"),l.append(b),d.textContent=S===null?sl(n.available):rl(e,o,r,p,S),u.hidden=v.candidate===null||v.candidate===0,u.hidden||K(u,...$(v.candidate))}function x(){let k=o.last_step-o.winner_step;if(k<=0)return null;let v=k===1?"step":"steps",E=t.state.unfolded?`Hide the last ${k===1?"":`${k} `}${v}`:`Show ${k} more ${v}`;return m("button",{type:"button",onclick:()=>t.set({unfolded:!t.state.unfolded})},E)}function L(){return he(()=>"search",()=>p,(k,v)=>ho(k,o,r,p,v))}function $(k){let v=zt(o,k),E=fo(o,r,v),S=[["Status",ks[o.status[k]]],["Token",`${de(r[o.token[k]])}, probability ${vs(o,k)}`],["Log-probability",qt(o.total[k])],["Score",`${qt(o.score[k])} (the winner's: ${qt(o.score[o.winners[0]])})`]],O=m("dl",{},...S.flatMap(([H,P])=>[m("dt",{},H),m("dd",{},P)]));return[m("p",{dir:"auto"},m("strong",{},X(E))),O,...A(k)]}let M=k=>e.hypotheses.findIndex(v=>v.candidate===k);async function T(k){if(M(k)<0)try{let v=await n.hypothesis(k);Object.assign(e.blobs,v.blobs),e.hypotheses.push(v.hypothesis)}catch(v){d.textContent=v instanceof Error?v.message:String(v);return}t.set({view:"alignment",hypothesis:M(k),hover:null,locked:null})}function A(k){if(o.status[k]==="finished"&&e.hypotheses.length>0&&(n.available||M(k)>=0))return[m("p",{},m("button",{type:"button",onclick:()=>{T(k)}},"Show its alignment"))];if(o.lineage.includes(k))return[m("p",{class:"small"},"It is part of the winner.")];if(!o.continuations[k]&&!n.available)return[m("p",{class:"small"},"A live page (regard look) shows where this hypothesis would have led.")];let v=s.read(String(k));if(!v){let R=s.problem(String(k));return[m("p",{class:"small"},R??"Continuing this hypothesis …")]}let E=we(v.tokens.slice(0,v.forced).map(R=>r[R])),S=o.score[o.winners[0]],O=S===null?null:v.score-S,H=O===null?"":O>1e-6?" Higher than the winner: the search missed it.":` ${(-O).toFixed(2)} lower than the winner (higher is better).`,P=Y(v.text),y=tl(P,E),C=y?[m("mark",{},P.slice(0,y)),P.slice(y)]:[P];return[m("p",{dir:"auto"},"If the model had to begin this way: ",...C),m("p",{class:"small"},`Score ${qt(v.score)}.${H} The same search continued it.`)]}return{element:h,update:w}}var ks={open:"kept and extended",finished:"finished",dropped:"dropped: not among the best of its step",beaten:"open when the search ended: it could not win any more"};function tl(e,t){let n=t.replace(/\s/g,""),o=0;for(let r=0;r<e.length;r++)if(!/\s/.test(e[r])){if(o===n.length)return r;if(e[r]!==n[o++])return 0}return o===n.length?e.length:0}function nl(e){let t=e.settings.beam_size;return e.settings.search==="greedy"?"Greedy search":`Beam search, ${String(t)} hypotheses per step`}function ol(e){let t=$n(e,e.winner_step),n=e.lineage.slice(1).map(s=>t.nodes.get(s)?.rank??1),o=Math.max(...n),r=[`The winner ended at step ${e.winner_step}.`];return r.push(o===1?"It ranked first at every step.":`It was not always the best: at step ${n.indexOf(o)+1} it ranked ${o} of ${t.steps[n.indexOf(o)+1].length}.`),e.last_step>e.winner_step?r.push(`The search continued to step ${e.last_step} to see whether a longer hypothesis wins.`):e.end==="max_new_tokens"&&r.push("It ended at the maximum length."),r.join(" ")}function rl(e,t,n,o,r){if(r===0)return`The search starts from the text ${X(Y(e.text,80))}.`;let s=fo(t,n,zt(t,r),120),i=o.nodes.get(r)?.rank,a=i?`rank ${i}, `:"";return`Step ${t.step[r]}, ${a}${ks[t.status[r]]}: ${X(s)}. Token probability ${vs(t,r)}, score ${qt(t.score[r])}.`}function sl(e){return Ee("a hypothesis","to read it",e?"Click a dropped one to see where it would have led":"Click to pin")}function vs(e,t){return ie(Math.exp(e.logprob[t]??-1/0))}function qt(e){return e===null?"−∞":e.toFixed(2).replace("-","−")}function il(){let e=(t,n)=>m("span",{},m("i",{class:t}),n);return m("div",{class:"legend small"},e("winner","winner"),e("","kept"),e("finished","finished"),e("dropped","dropped"),m("span",{},"number and bar: probability of the token"))}var $s=.005,go=Math.log(1.05);function Mn(e){return Object.entries(e.delta).flatMap(([t,n])=>n.flatMap((o,r)=>o.flatMap((s,i)=>s===null?[]:[{key:`${t}.${r}.${i}`,group:t,layer:r,head:i,delta:s}])))}function Ms(e){let t=Mn(e).reduce((n,o)=>n&&n.delta<=o.delta?n:o,null);return t&&t.delta<=-go?t:null}function Ls(e){let t=Mn(e).reduce((n,o)=>n&&n.delta>=o.delta?n:o,null);return t&&t.delta>=go?t:null}var bo=e=>Math.abs(e)>=$s;function al(e,t){return{before:Math.exp(e.baseline),after:Math.exp(e.baseline+t)}}function Ln(e,t,n=1){let o=n===1?"Without this head":`Without these ${n} heads`,{before:r,after:s}=al(e,t),[i,a]=[Z(r),Z(s)];return bo(t)?i===a?`${o} ${e.output} is ${wo(t)} ${t<0?"less":"more"} probable.`:`${o} the probability of ${e.output} ${t<0?"falls":"rises"} from ${i} to ${a}.`:`${o} ${e.output} stays as probable: ${n===1?"it does":"they do"} nothing here that the other heads do not replace.`}function wo(e){let t=Math.exp(Math.abs(e));if(t<10)return`${t.toFixed(t<1.095?2:1)} times`;let n=Number(t.toPrecision(2));return`about ${n<1e9?n.toLocaleString("en"):n.toExponential(0)} times`}function jt(e){let t=Math.exp(Math.abs(e)),n=t<100?t.toPrecision(2):t<1e4?t.toFixed(0):`e${(Math.abs(e)/Math.LN10).toFixed(0)}`;return Math.abs(e)<go?"":(e<0?"÷":"×")+n.replace(/^e/,"1e")}var xo=e=>(e<0?"−":"+")+Math.abs(e).toFixed(2);function Ts(e,t){let n=e.ablation?.outputs??[],o=e.sequences.target??[],r=[];return n.forEach((s,i)=>{let a=s===null?void 0:o[s];if(!a||a.logprob===void 0)return;let l=r.at(-1),[c,d]=[a.logprob??-1/0,t[i]??-1/0];l&&a.word!==null&&l.tokens[0].word===a.word?(l.tokens.push(a),l.outputs.push(i),l.total+=c,l.change+=d):r.push({tokens:[a],outputs:[i],total:c,change:d,label:"",before:0,after:0})}),r.map(({tokens:s,outputs:i,total:a,change:l})=>({outputs:i,label:s[0].role==="special"?s[0].text:we(s,60),before:Math.exp(a),after:Math.exp(a+l)}))}function Ss(e){let t=o=>Math.log(o.after/o.before),n=e.reduce((o,r)=>o&&t(o)<=t(r)?o:r,null);return n&&n.before>0&&t(n)<=-$s?n:null}var ll=e=>/^\d+$/.test(e.trim())?`Label ${e.trim()}`:e.trim();function Es(e,t){let n=({labels:o,probabilities:r})=>`${ll(o[0])} ${Z(r[0])}`;return e.predictions.flatMap((o,r)=>{let s=t[r];if(!s?.labels.length||!o.labels.length)return[];if(e.predictions.length>1&&o.labels[0]===s.labels[0])return[];let i=o.position===null?void 0:e.sequences.source?.[o.position];return[`${i&&i.role==="text"?`${X(we([i],30))}: `:""}${n(o)} → ${n(s)}`]})}function Tt(e){let t=e.split(".");return{group:t.slice(0,-2).join("."),layer:Number(t.at(-2)),head:Number(t.at(-1))}}function ko(e,t){let o=Math.floor((t-40)/e.heads),r=Math.max(9,Math.min(112,o));return{pitch:r,cell:r-(r>20?4:1),left:40,top:As,width:40+e.heads*r,height:As+e.layers*yo(r)}}var yo=e=>e>80?46:Math.min(e,36),As=32;function Cs(e,t,n,o,r,s){let{left:i,top:a,pitch:l,cell:c}=o,[d,u]=[yo(l),yo(l)-(l-c)],h=Math.max(1e-9,...Object.values(t.delta).flat(2).map(f=>Math.abs(f??0))),p={fill:r.muted,size:11};e.text(i,7,"head",p),e.text(i-8,23,"layer",{...p,anchor:"end"});for(let f=0;f<n.heads;f++)(l>=18||f%4===0)&&e.text(i+f*l+c/2,23,String(f+1),{...p,anchor:"middle"});t.delta[n.name].forEach((f,b)=>{let g=a+b*d;(d>=14||b%2===0)&&e.text(i-8,g+u/2,String(b+1),{...p,anchor:"end"}),f.forEach((w,x)=>{let L=i+x*l;if(w===null)return e.rect(L,g,c,u,{stroke:r.rule});let $=.62*Math.abs(w)/h;e.rect(L,g,c,u,{fill:w<0?r.hue:r.minus,opacity:$}),e.rect(L+.5,g+.5,c-1,u-1,{stroke:r.rule}),l>=40&&e.text(L+c/2,g+u/2,jt(w),{fill:r.ink,size:l>80?15:12,anchor:"middle"})})});for(let{group:f,layer:b,head:g}of s.map(Tt))f===n.name&&e.rect(i+g*l,a+b*d,c,u,{stroke:r.accent,width:3})}var Rs={name:"break",title:"Break it",applies:e=>e.ablation!==null&&e.attention.length>0,mount:cl};function cl({doc:e,store:t,blobs:n,live:o}){let r=e.ablation,s=e.attention.filter(y=>r.delta[y.name]),i=new Map(Mn(r).map(y=>[y.key,y])),[a,l]=[Ms(r),Ls(r)],c=Math.max(1e-9,...[...i.values()].map(({delta:y})=>Math.abs(y))),d=new ke(y=>o.ablate(y.split(",")),()=>t.notify()),u=m("p",{class:"readout",role:"status","aria-live":"polite"}),h=m("div",{class:"card result"}),p=x("All on",()=>t.set({headsOff:[]})),f=new Map,b=s.map(A),g=he(()=>`break.${L().name}`,()=>ko(L(),900),(y,C)=>{let R=L();Cs(y,r,R,ko(R,900),C,t.state.headsOff)}),w=m("section",{class:"break","aria-label":"Break it"},m("h2",{},"What breaks if a head is switched off?"),m("p",{class:"fact"},$()),m("div",{class:"controls"},a&&x("Switch off the head that matters most",()=>t.set({headsOff:[a.key]})),l&&x("Switch off the head that hurts most",()=>t.set({headsOff:[l.key]})),p,g),m("div",{class:"grids"},...b),u,h,m("div",{class:"legend small"},m("span",{},m("i",{class:"plus"}),"the head helps: without it the output is less probable (÷)"),m("span",{},m("i",{class:"minus"}),"without it the output is more probable (×)")),m("p",{class:"small"},M()));function x(y,C){return m("button",{type:"button",onclick:C},y)}function L(){let[y]=t.state.headsOff;return s.find(C=>y&&Tt(y).group===C.name)??s[0]}function $(){return a?`${wt(a.group,a.layer,a.head)} matters most. ${Ln(r,a.delta).replace("this head","it")}`:`No single head is needed: without any of them ${r.output} stays about as probable.`}function M(){let y=i.size,C=Object.keys(r.texts).length,R=e.model.family!=="encoder_only"&&C<y&&!o.available?` It has the new output of ${C} of ${y} heads, those with the largest effect: the rest would have taken long.`:"";return`${o.available?"Switch off as many heads as you like.":`A saved page switches off one head at a time: it has no model to try combinations with (regard look has).${R}`} ÷8.0: the output is 8 times less probable without the head. Heads can replace each other, so a small change does not mean that a head does nothing.`}function T(y){let{headsOff:C}=t.state,R=C.filter(I=>I!==y);R.length<C.length?t.set({headsOff:R}):t.set({headsOff:o.available?[...C,y]:[y]})}function A(y){let C=m("div",{class:y.heads>8?"switches dense":"switches",style:`--heads: ${y.heads}`,"data-group":y.name});C.append(m("span",{class:"small"},"layer"));for(let R=0;R<y.heads;R++)C.append(m("span",{class:"small"},R===0&&y.heads<=8?"head 1":String(R+1)));for(let R=0;R<y.layers;R++){C.append(m("span",{class:"small"},String(R+1)));for(let I=0;I<y.heads;I++){let G=`${y.name}.${R}.${I}`,D=i.get(G)?.delta??0,N=Math.round(42*Math.abs(D)/c),z=D<0?"--hue":"--minus",q=m("button",{type:"button",role:"switch",class:"switch",tabindex:R+I===0?0:-1,"aria-label":`${wt(y.name,R,I)}${D?`, ${jt(D)||"no effect"}`:""}`,title:`${wt(y.name,R,I)}: ${xo(D)} nats`,style:`--effect: color-mix(in srgb, var(${z}) ${N}%, var(--page))`,onclick:()=>T(G),onfocus:()=>k(G),onblur:()=>k(null),onpointerenter:()=>k(G),onpointerleave:()=>k(null)},m("i",{"aria-hidden":"true"}),m("span",{"aria-hidden":"true"},jt(D)));q.dataset.key=G,f.set(G,q),C.append(q)}}return C.addEventListener("keydown",R=>{let I={ArrowUp:[-1,0],ArrowDown:[1,0],ArrowLeft:[0,-1],ArrowRight:[0,1]},G=R.target.dataset.key;if(R.key==="Escape")return t.set({headsOff:[]});let D=I[R.key];if(!D||!G)return;R.preventDefault();let{layer:N,head:z}=Tt(G),q=f.get(`${y.name}.${N+D[0]}.${z+D[1]}`);q&&(f.get(G).tabIndex=-1,q.tabIndex=0,q.focus())}),m("div",{class:"group"},m("h3",{},ve[y.name]),m("div",{class:"scroller"},C))}function k(y){let C=y===null?void 0:i.get(y);u.textContent=C?`${wt(C.group,C.layer,C.head)}. ${Ln(r,C.delta)}`:"Every switch is a head. Switch one off to see what changes without it."}function v(y){let[C]=y;if(y.length===1){let{group:R,layer:I,head:G}=Tt(C),D=r.token_deltas?.[R],N=D&&e.blobs[D]?n.read(D):void 0,z=N?.shape[2]??0,q=(I*(N?.shape[1]??0)+G)*z,V={text:r.texts[C],delta:i.get(C)?.delta,token_deltas:N&&Array.from(N.codes.subarray(q,q+z)),predictions:r.predictions?.[C]};if(V.text!==void 0||V.predictions!==void 0||!o.available)return V}return d.read(y.join())??null}function E(y){if(y.length===0)return[m("p",{class:"retyped",dir:"auto"},Y(et(e))),m("p",{class:"small"},"All heads are on.")];let C=y.map(Tt).map(({group:U,layer:W,head:oe})=>wt(U,W,oe)),R=m("p",{class:"small"},`Off: ${C.slice(0,6).join("; ")}${C.length>6?"; …":""}`),I=v(y);if(!I){let U=y.length===1?"Running the model without this head …":"Running the model without these heads …";return[R,m("p",{},d.problem(y.join())??U)]}let{delta:G,token_deltas:D,predictions:N,text:z}=I,q=D?Ts(e,D):[],V=G===void 0?"Not measured.":Ln(r,G,y.length),_=G===void 0?"":`${wo(G)} ${G<0?"less":"more"} probable; ${xo(G)} nats`;return[R,...N?S(N):O(z),m("p",{class:"effect",title:_},V),...H(q,G)]}function S(y){let C=Es(e,y),R=e.predictions.some((G,D)=>G.labels[0]!==y[D]?.labels[0]),I=e.predictions.length===1;return[...(C.length?C.slice(0,12):[et(e)]).map(G=>m("p",{class:"retyped",dir:"auto"},Y(G))),m("p",{class:"small verdict"},R?I?"The label changes.":`${C.length} of ${e.predictions.length} predictions change.`:I?"The label stays the same.":"All predictions stay the same.")]}function O(y){if(e.model.family==="encoder_only")return[m("p",{class:"retyped",dir:"auto"},Y(et(e)))];if(y===void 0)return[m("p",{class:"small verdict"},"This page does not have the new output of this head; regard look shows it.")];let R=kt(Y(e.output,4e3).trim(),Y(y,4e3).trim()).map(({kind:G,text:D})=>G==="same"?D:m(G==="removed"?"del":"ins",{},D)),I=y===e.output;return[m("p",{class:"retyped",dir:"auto"},...R),m("p",{class:"small verdict"},I?"The output stays the same.":y.trim()?"The output changes.":"Nothing is left.")]}function H(y,C){let R=Ss(y);if(!R||C===void 0||!bo(C)||y.length<2)return[];let I=N=>Math.log(N.after/N.before)||0,G=Math.max(...y.map(N=>Math.abs(I(N)))),D=y.map(N=>{let z=I(N),q=G>0?Math.round(42*Math.abs(z)/G):0,V=z<0?"--hue":"--minus",_=`${Z(N.before)} → ${Z(N.after)}`;return m("span",{class:"word",title:_,style:`background: color-mix(in srgb, var(${V}) ${q}%, var(--page))`},Y(N.label,40))});return[m("p",{class:"hurt"},`${X(Y(R.label,40))} suffers most: from ${Z(R.before)} to ${Z(R.after)}.`),m("p",{class:"words",dir:"auto"},...D.slice(0,80))]}function P(){let{headsOff:y}=t.state;for(let[C,R]of f)R.setAttribute("aria-checked",String(!y.includes(C)));p.disabled=y.length===0,K(h,...E(y)),u.textContent||k(null)}return{element:w,update:P}}var at=e=>e?.bytes?`‹${e.bytes}›`:e?.text??"?";function Ds(e,t){return{isSameModel:e.model.sha256===t.model.sha256,isSameInput:e.text===t.text,input:kt(e.text,t.text),output:ul(Ps(e),Ps(t)),sure:[wn(e),wn(t)],split:ml(e,t)}}function Ps(e){if(!e.sequences.target)return Re(e).told.map(o=>e.predictions[o]).filter(o=>o.labels.length>0).map(({labels:o,probabilities:r})=>({text:o[0].trim(),key:o[0].trim(),probability:r[0]}));let t=_e(e).filter(o=>o.role!=="special"),n=[];return t.forEach((o,r)=>{ze(t,r)?n[n.length-1].push(o):n.push([o])}),n.map(o=>({text:we(o,60),key:o.map(at).join("").trim(),probability:Math.exp(o.reduce((r,s)=>r+(s.logprob??-1/0),0))}))}function ul(e,t){let n=o=>o.map(r=>r.key);return hn(n(e),n(t)).map(o=>({kind:o.kind,a:o.kind==="added"?null:e[o.a],b:o.kind==="removed"?null:t[o.b]}))}function Fs(e,t){return $o(_e(e).map(at),_e(t).map(at))}function _e(e){return(e.sequences.target??[]).filter(t=>t.logprob!==void 0)}function vo(e,t){let{next:n}=e,o=t+(e.sequences.target??[]).length-_e(e).length-(n?.first??0);return(n?.tokens[o]??[]).map((r,s)=>({text:de(e.vocabulary[r]),key:at(e.vocabulary[r]),probability:n.probabilities[o][s]}))}function Hs(e,t,[n,o]){let[r,s]=[vo(e,n),vo(t,o)],i=(c,d)=>c.find(u=>u.key===d)?.probability??null,a=new Map([...r,...s].map(c=>[c.key,c.text])),l=c=>Math.max(c.a??0,c.b??0);return[...a].map(([c,d])=>({key:c,text:d,a:i(r,c),b:i(s,c)})).sort((c,d)=>l(d)-l(c))}function Mo(e,t){let[n,o]=[_e(e),_e(t)],r=Math.min(n.length,o.length);for(let s=0;s<r;s++)if(at(n[s])!==at(o[s]))return s;return null}function ml(e,t){let n=Mo(e,t);if(n===null)return null;let o=[e,t].map(i=>_e(i)[n]),r=(i,a)=>vo(i,n).find(l=>l.key===at(a))?.probability??null,s=(i,a,l)=>({text:de(a),probability:Math.exp(a.logprob??-1/0),ofOther:r(i,l)});return{before:we(_e(e).slice(0,n),400),a:s(e,o[0],o[1]),b:s(t,o[1],o[0])}}function $o(e,t){let n=[],[o,r]=[[],[]],s=()=>{o.length===r.length&&o.forEach((i,a)=>n.push([i,r[a]])),[o,r]=[[],[]]};for(let i of hn(e,t))i.kind==="removed"?o.push(i.a):i.kind==="added"?r.push(i.b):(s(),n.push([i.a,i.b]));return s(),n}function _s(e,t){let n=a=>a.map(l=>l.label),o=$o(n(e.rows),n(t.rows)),r=$o(n(e.columns),n(t.columns)),s=(a,l)=>a.label===l.label?a:{...a,label:`${a.label} → ${l.label}`},i=new Float32Array(o.length*r.length);return o.forEach(([a,l],c)=>r.forEach(([d,u],h)=>i[c*r.length+h]=t.value(l,u)-e.value(a,d))),{rows:o.map(([a,l])=>s(e.rows[a],t.rows[l])),columns:r.map(([a,l])=>s(e.columns[a],t.columns[l])),rowPairs:o,columnPairs:r,values:i}}var Os=e=>`${e} ${e===1?"word":"words"}`,dl=e=>`${Os(e)} ${e===1?"differs":"differ"}`,it=e=>X(Y(e.trim()||"␣",40));function Is(e){let{isSameModel:t,isSameInput:n,input:o,output:r,sure:s,split:i}=e,a=[],l=t?"One model":"Two models";n?a.push(`${l}, the same input.`):a.push(`${l}, two inputs: ${dl(Math.max(1,$r(o)))}.`),a.push(pl(r));let[c,d]=s;c&&d&&c.kind===d.kind&&a.push(hl(c,d)),i&&a.push(gl(i));let u=bl(r);if(u&&Math.abs(u.b.probability-u.a.probability)>=.01){let h=u.b.probability>u.a.probability?"likelier":"less likely",[p,f]=[u.a,u.b].map(b=>Z(b.probability));a.push(`Of the words in both outputs, ${it(u.a.text)} changes most: ${h} in B, ${f} instead of ${p}.`)}return a}function pl(e){let t=e.filter(i=>i.kind!=="same");if(e.length===0)return"Both outputs are empty.";if(t.length===0)return"The outputs are the same.";let[n,o]=[t.filter(i=>i.a),t.filter(i=>i.b)];if(e.length===2&&n.length===1&&o.length===1)return`A says ${it(n[0].a.text)}, B says ${it(o[0].b.text)}.`;let r=Math.max(e.filter(i=>i.a).length,e.filter(i=>i.b).length),s=Math.max(n.length,o.length);return`${s} of ${Os(r)} of the output ${s===1?"differs":"differ"}.`}function hl(e,t){let[n,o]=[Z(e.value),Z(t.value)],r=e.kind==="token"?" per token":"";if(n===o){let s=Math.max(e.value,t.value)/Math.max(Math.min(e.value,t.value),Number.MIN_VALUE);return s<1.5?`A and B are equally sure: ${n}${r}.`:`${e.value>t.value?"A":"B"} is surer: its output is about ${fl(s)} times as likely (both ${n}${r}).`}return e.value<t.value?`B is surer: ${o}${r} instead of ${n}.`:`A is surer: ${n}${r}, B ${o}.`}var fl=e=>e<10?e.toFixed(1):e<1e6?Math.round(e).toLocaleString("en"):"a million or more";function gl({before:e,a:t,b:n}){let o=e?`After ${it(e)}`:"At the start",r=(a,l,c)=>a===null?"":` (${l} gives ${it(c)} ${Z(a)})`,s=`A writes ${it(t.text)} with ${Z(t.probability)}${r(n.ofOther,"B",t.text)}`,i=`B writes ${it(n.text)} with ${Z(n.probability)}${r(t.ofOther,"A",n.text)}`;return`${o}, ${s}; ${i}.`}function bl(e){let t=o=>Math.abs(o.b.probability-o.a.probability),n=e.filter(o=>o.kind==="same");return n.length?n.reduce((o,r)=>t(r)>t(o)?r:o):null}function Bs(e,t,n){let o=(l,c,d)=>c.length+d.length-2*l.length,r=o(e.rowPairs,t.rows,n.rows),s=o(e.columnPairs,t.columns,n.columns);if(r+s===0)return"Every cell of A is compared with one of B.";let i=(l,c)=>l?[`${l} ${c}${l===1?"":"s"}`]:[];return`Rows and columns are paired by equal tokens; ${[...i(r,"row"),...i(s,"column")].join(" and ")} without a counterpart ${r+s===1?"is":"are"} left out.`}function lt({store:e,blobs:t,live:n},o=16){let r=new ke(async i=>{let[a,l,c]=i.split("|");return Be(await n.map(a,Number(l),Number(c)))},()=>e.notify(),o),s=(i,a,l)=>`${i.name}|${a}|${l}`;return{read(i,a,l){let c=i.maps[`${a}.${l}`];return c?t.read(c):n.available?r.read(s(i,a,l)):null},problem:(i,a,l)=>r.problem(s(i,a,l))}}var Us={name:"compare",title:"Compare",applies:e=>e.against!==void 0,mount:wl};function wl(e){let{doc:t,store:n}=e,o=t.against,r=Ds(t,o),s=new ke(u=>Be(o.blobs[u]),()=>n.notify()),i=new vt({...o,live:t.live,session:t.session},!0),a=[lt(e),lt({doc:o,store:n,blobs:s,live:i})],l=kl(e,o),c=vl(e,o,r,a);return{element:m("section",{class:"compare","aria-label":"Compare"},m("h2",{},xl(r)),m("ul",{class:"facts"},...Is(r).map(u=>m("li",{},u))),m("div",{class:"sides"},Ns("A",t,r),Ns("B",o,r)),m("p",{class:"small"},"Underlined: only on this side. Below each word of the output: its probability."),l?.element,c.element),update:u=>{let h=u.size>0&&[...u].every(p=>p==="hover"||p==="locked");h||l?.update(),c.update(h)}}}function xl({isSameModel:e,isSameInput:t}){return t?e?"What differs between two runs?":"What differs between two models?":e?"What differs between two inputs?":"What differs between two models and inputs?"}function Ns(e,t,{input:n,output:o}){let r=e==="A"?"added":"removed",s=n.filter(c=>c.kind!==r).flatMap(({kind:c,text:d})=>{let u=Y(d.trimStart());return[/^\s/.test(d)?" ":"",c==="same"?u:m("mark",{},u)]}),i=e==="A"?"a":"b",a=o.filter(c=>c.kind!==r).map(c=>yl(c[i],c.kind!=="same")),l=$t(Re(t).untagged);return m("div",{class:"card"},m("h3",{},[e,Y(t.model.name,60)].filter(Boolean).join(": ")),m("p",{class:"small",dir:"auto"},...s),m("p",{class:"words",dir:"auto"},...a.length?a:[Y(et(t),200)]),l?m("p",{class:"small"},l):null)}function yl(e,t){let n=Y(e.text||"␣",60);return m("span",{},t?m("mark",{},n):n,m("span",{class:"small"},Z(e.probability)))}function kl({doc:e,store:t},n){if(!e.next||!n.next)return null;let[o,r]=[_e(e),_e(n)],s=Math.min(e.next.tokens.length,n.next.tokens.length),i=Fs(e,n).filter(([w,x])=>w<s&&x<s),a=Mo(e,n);if(a!==null&&a<s&&!i.some(([w])=>w===a)&&(i.push([a,a]),i.sort((w,x)=>w[0]-x[0])),i.length===0)return null;let l=Math.max(0,i.findIndex(([w])=>w===a)),c=[rt(o),rt(r)],d=m("div",{class:"chips scroller",role:"group","aria-label":"Output position"}),u=m("p",{class:"fact"}),h=m("table",{class:"next"}),p=m("div",{},m("h3",{},"What each would write next"),d,u,h),f=i.map(([w,x],L)=>{let[$,M]=[c[0][w],c[1][x]];return m("button",{type:"button",onclick:()=>t.set({compared:L})},$===M?$:`${$} → ${M}`)});d.append(...f),d.addEventListener("keydown",w=>{let x={ArrowLeft:-1,ArrowRight:1}[w.key];if(!x)return;w.preventDefault();let L=Math.max(0,Math.min(i.length-1,b()+x));t.set({compared:L}),f[L].focus()});let b=()=>Math.min(t.state.compared??l,i.length-1);function g(){let w=b();f.forEach((A,k)=>A.setAttribute("aria-pressed",String(k===w)));let[x,L]=i[w],$=a===null||x===L&&x<=a;u.textContent=`${$?"Both wrote the same before this token.":"Each continues its own beginning."} –: less probable than those listed.`;let M=A=>{let k=m("span",{class:"bar"});return k.style.width=`${(A??0)*60}%`,m("td",{},k,A===null?"–":Z(A))},T=Hs(e,n,i[w]).slice(0,8).map(A=>m("tr",{},m("th",{scope:"row",dir:"auto"},A.text),M(A.a),M(A.b)));K(h,m("thead",{},m("tr",{},...["Token","A","B"].map(A=>m("th",{scope:"col"},A)))),m("tbody",{},...T))}return{element:p,update:g}}function vl({doc:e,store:t},n,{isSameModel:o},r){let s=e.attention.map(A=>A.name).filter(A=>Tn(n,A));if(s.length===0)return{element:m("p",{class:"fact"},"The two models have no attention of the same kind to compare."),update:()=>{}};let i=m("div",{class:"controls"}),a=m("p",{class:"readout",role:"status","aria-live":"polite"}),l=m("p",{class:"small"}),c=["A","B","B − A"].map(A=>new ce(`Weights of ${A}. Arrow keys move, Escape releases.`,A==="B − A"?{}:{tabindex:-1})),d=c.map(()=>m("h3")),u=c.map((A,k)=>m("div",{},d[k],m("div",{class:"scroller"},A.element))),h=m("div",{class:"maps"},...u),p=m("div",{class:"legend small"},m("span",{},m("i",{class:"plus"}),"more weight in B"),m("span",{},m("i",{class:"minus"}),"more weight in A")),f=m("div",{},m("h3",{},"What one head reads"),i,a,h,p,l),b=[null,null],g=[],w=null,x=()=>w?Fe(t.state.locked??t.state.hover,w):null,L=(A,k)=>{if(!A||!w||k===2)return A;let v=(O,H)=>O.findIndex(P=>P[k]===H),E=v(w.rowPairs,A.row),S=A.column===null?null:v(w.columnPairs,A.column);return E<0?null:{row:E,column:S!==null&&S<0?null:S}};c.forEach((A,k)=>{let v=E=>{let{x:S,y:O}=A.locate(E),H=k===2?w:b[k];return H&&g[k]?L(Ue(H,g[k],S,O),k):null};A.element.addEventListener("pointermove",E=>{let[S,O]=[v(E),t.state.hover];(S?.row!==O?.row||S?.column!==O?.column)&&t.set({hover:S})}),A.element.addEventListener("pointerleave",()=>t.set({hover:null})),A.element.addEventListener("click",E=>t.set({locked:t.state.locked?null:v(E)}))}),c[2].element.addEventListener("keydown",A=>{if(A.key==="Escape")return t.set({locked:null});let v={ArrowUp:[-1,0],ArrowDown:[1,0],ArrowLeft:[0,-1],ArrowRight:[0,1]}[A.key];if(!v||!w)return;A.preventDefault();let E=(H,P)=>Math.max(0,Math.min(P-1,H)),S=x()??{row:-v[0],column:-v[1]},O={row:E(S.row+v[0],w.rows.length),column:E((S.column??0)+v[1],w.columns.length)};t.set({locked:O,hover:null})});function $(A){let k=s.includes(A.group)?A.group:s[0],[v,E]=[Tn(e,k),Tn(n,k)],[S,O]=k===A.group?[A.layer,A.head]:v.default_head,H=A.againstHead,P=H!==null&&H[0]<E.layers&&H[1]<E.heads,[y,C]=o?[S,O]:P?H:E.default_head;return[{group:v,layer:S,head:O},{group:E,layer:y,head:C}]}function M(A){let k=$(A),v={hover:null,locked:null},E=({group:y})=>Array.from({length:y.layers*y.heads},(C,R)=>{let[I,G]=[Math.floor(R/y.heads),R%y.heads];return[`${I}.${G}`,`layer ${I+1}, head ${G+1}`]}),S=(y,C,R)=>Se(y,E(k[C]),`${k[C].layer}.${k[C].head}`,I=>{let[G,D]=I.split(".").map(Number);R(G,D)}),O=y=>{let[C,R]=Tn(e,y).default_head;t.set({group:y,layer:C,head:R,againstHead:null,...v})},H=[e,n].some(y=>Object.values(y.sequences).some(C=>C.some((R,I)=>ze(C,I)))),{group:P}=k[0];return[s.length>1?Se("Attention",s.map(y=>[y,ve[y]]),P.name,O):null,S(o?"Head":"Head of A",0,(y,C)=>t.set({group:P.name,layer:y,head:C,...v})),o?null:S("Head of B",1,(y,C)=>t.set({againstHead:[y,C],...v})),H?Me("Words",A.words,y=>t.set({words:y,...v})):null,he(()=>`compare.${P.name}.${k[0].layer}.${k[0].head}`,()=>g[2]??{width:0,height:0},(y,C)=>w&&Ws(y,w,g[2],C,null))]}function T(A){let{state:k}=t,v=ae();if(!A){let S=$(k);K(i,...M(k));let O=[e,n],H=S.map(({group:V,layer:_,head:U},W)=>r[W].read(V,_,U));b=S.map(({group:V},_)=>{let U=H[_];if(!U)return null;let W=qe(O[_],V),oe=te=>fe(te,k.words,!0);return je(U.codes,U.shape[1],oe(W.rows),oe(W.columns))});let[P,y]=b;w=P&&y?_s(P,y):null;let C=H.some(V=>V===null),R=S.map(({group:V,layer:_,head:U},W)=>r[W].problem(V,_,U)).find(Boolean);l.textContent=R??(C?"This file does not have the maps of this head on both sides; choose another head.":w&&P&&y?Bs(w,P,y):"");let I=h.clientWidth<820,G=Math.max(240,I?h.clientWidth-6:(h.clientWidth-48)/3),D=window.innerHeight-h.getBoundingClientRect().top-window.scrollY-56,N=Math.max(0,...[P,y,w].map(V=>V?.rows.length??0)),z=k.present||I?640:Math.min(640,Math.max(D,24*N+90)),q=[P,y,w];c.forEach((V,_)=>{let U=q[_];u[_].hidden=!U,U&&(d[_].textContent=["A","B","B − A"][_],g[_]=He(U,G,v,z),V.describe(g[_].left,g[_].top,g[_].cell),V.draw(g[_].width,g[_].height,W=>{_===2?Ws(W,w,g[2],v,null):Ae(W,q[_],g[_],v,{pixelRatio:window.devicePixelRatio||1})}))}),p.hidden=!w}let E=x();c.forEach((S,O)=>{let H=g[O];u[O].hidden||!H||S.drawOverlay(H.width,H.height,P=>{if(!E||!w)return;if(O===2)return $l(P,w,H,v,E);let y={row:w.rowPairs[E.row][O],column:E.column===null?null:w.columnPairs[E.column][O]};Ze(P,b[O],H,v,y,k.locked!==null)})}),a.textContent=w?E?Gs(w,b,E):Ml(w,b):"Reading the maps …",!w&&l.textContent&&(a.textContent=l.textContent)}return{element:f,update:T}}var Tn=(e,t)=>e.attention.find(n=>n.name===t);function Ws(e,t,n,o,r){let{cell:s,left:i,top:a}=n,[l,c]=[t.rows.length,t.columns.length],d=Uint32Array.from(t.values,u=>Qe(o.page,u<0?o.minus:o.hue,Math.abs(u)<.002?0:Math.sqrt(Math.abs(u))));l&&c&&e.pixels(i,a,c*s,l*s,{width:c,height:l,data:d}),e.rect(i-.5,a-.5,c*s+1,l*s+1,{stroke:o.rule}),Ot(e,t,n,o,r)}function $l(e,t,n,o,r){let s=n.top+r.row*n.cell,i=t.columns.length*n.cell;e.rect(n.left,s,i,n.cell,{stroke:o.accent,width:1.5}),r.column!==null&&e.rect(n.left+r.column*n.cell,s,n.cell,n.cell,{stroke:o.accent,width:2.5})}function Gs(e,[t,n],o){let r=e.columns.length,s=Array.from(e.values.subarray(o.row*r,(o.row+1)*r)),i=o.column??s.reduce((b,g,w)=>Math.abs(g)>Math.abs(s[b])?w:b,0);if(r===0)return"No column has a counterpart.";let[a,l]=e.rowPairs[o.row],[c,d]=e.columnPairs[i],u=(b,g)=>b.label?X(b.label):`cell ${g+1}`,[h,p]=[t.value(a,c),n.value(l,d)],f=`${p<h?"−":"+"}${ie(Math.abs(p-h))}`;return`${u(e.rows[o.row],o.row)} reads ${u(e.columns[i],i)}: ${ie(h)} in A, ${ie(p)} in B (${f}).`}function Ml(e,t){let{values:n,columns:o}=e;if(n.length===0)return"No token of A has a counterpart in B.";let r=0;n.forEach((i,a)=>r=Math.abs(i)>Math.abs(n[r])?a:r);let s={row:Math.floor(r/o.length),column:r%o.length};return`The largest difference: ${Gs(e,t,s)} ${Ee("a cell","to compare it")}`}var ct={entropy:{title:"Entropy",unit:"nats",says:e=>`entropy ${e} nats`},distance:{title:"Distance",unit:"tokens",says:e=>`mean distance ${e} tokens`},previous:{title:"Previous token",unit:"",says:e=>`weight ${e} on the previous token`},first:{title:"First token (attention sink)",unit:"",says:e=>`weight ${e} on the first token`}},Ll=34,Lo=30;function To(e,t,n){let o=Ll,r=(t-o)/e.heads,s=n?Math.max(30,Math.min(62,Math.floor(r))):Math.max(6,Math.min(20,Math.floor(r))),i=s-(n?8:1),a=Lo;return{cell:i,pitch:s,left:o,top:a,width:o+e.heads*s,height:a+e.layers*s}}function zs(e,t,n,o,r,s,i){let{cell:a,pitch:l,left:c,top:d}=n,u=p=>l>=18||p%Math.ceil(18/l)===0,h={fill:o.muted,size:11};e.text(c,6,"head",h),e.text(c-6,Lo/2+6,"layer",{...h,anchor:"end"});for(let p=0;p<t.heads;p++)u(p)&&e.text(c+p*l+a/2,Lo/2+6,String(p+1),{fill:o.muted,size:11,anchor:"middle"});for(let p=0;p<t.layers;p++)u(p)&&e.text(c-6,d+p*l+a/2,String(p+1),{fill:o.muted,size:11,anchor:"end"});if(r?Tl(e,t,n,o,r):Sl(e,t,n,o,s),i){let[p,f]=[c+(i.head??0)*l,d+i.layer*l],b=i.head===null?(t.heads-1)*l+a:a,g=r?2.5:1;e.rect(p-g,f-g,b+2*g,a+2*g,{stroke:o.accent,width:r?2.5:2,radius:r?3:0})}}function Tl(e,t,n,o,r){let{cell:s,pitch:i,left:a,top:l}=n,[c,d]=r.shape.slice(2),u=r.codes;for(let h=0;h<t.layers;h++)for(let p=0;p<t.heads;p++){let f=(h*t.heads+p)*c*d,b=u.subarray(f,f+c*d),[g,w]=[a+p*i,l+h*i];e.pixels(g,w,s,s,ln(b,c,d,o.pixels,s*2,s*2)),e.rect(g-.5,w-.5,s+1,s+1,{stroke:o.rule,radius:1})}}function Sl(e,t,n,o,r){let{cell:s,pitch:i,left:a,top:l}=n,c=So(t,r);t.statistics[r].forEach((d,u)=>d.forEach((h,p)=>{let[f,b]=[a+p*i,l+u*i],g=o.ramp[Math.round(255*(h??0)/c)];e.rect(f,b,s,s,h===null?{stroke:o.rule}:{fill:g})}))}function So(e,t){return t==="previous"||t==="first"?1:Math.max(1e-9,...e.statistics[t].flat().map(n=>n??0))}function Eo(e,t,n,o){let r=Math.floor((n-t.left)/t.pitch),s=Math.floor((o-t.top)/t.pitch);return r>=0&&r<e.heads&&s>=0&&s<e.layers?{layer:s,head:r}:null}function qs(e,t,n,o){let r=w=>t.statistics[w]?.[n]?.[o]??null,[s,i,a,l]=[r("entropy"),r("distance"),r("previous"),r("first")],c=w=>`${Math.round(w*100)} %`;if(a!==null&&a>=.5)return`This head reads the previous token: it gets ${c(a)} of the weight.`;if(l!==null&&l>=.5&&t.name!=="decoder.cross"&&t.column_count>4)return`This head rests on the first token, an attention sink: it gets ${c(l)} of the weight.`;if(s===null)return"";let d=Math.exp(s),u=d<1.5?"one":String(Math.round(d)),h=e.picture?.kind==="image"?"patch":e.picture?"time step":"token",p=t.columns==="source"?e.picture?h:t.name==="decoder.cross"?"source token":h:"token",f=t.rows==="target"?t.name==="decoder.cross"&&t.row_start>0?"generated token":"token":h,b=u==="one"?p:p.endsWith("ch")?`${p}es`:`${p}s`,g=i===null?"":`, ${i.toFixed(1)} positions away on average`;return`Each ${f} reads about ${u} ${b}${g}.`}var El=100;function Sn({doc:e}){return e.attention.reduce((t,n)=>t+n.layers*n.heads,0)<=El}function En({store:e},t,n,o){let r=`${ve[t.name]}: choose a head. Arrow keys move.`,s=new ce(r,{"data-group":t.name}),i=To(t,300,!0),a=u=>{o.textContent=u?Al(t,u.layer,u.head):""},l=u=>{let h=e.state.group===t.name?e.state.query:null;e.set({group:t.name,...u,meanOfHeads:!1,query:h,locked:null,hover:null})};s.element.addEventListener("pointermove",u=>{let{x:h,y:p}=s.locate(u);a(Eo(t,i,h,p))}),s.element.addEventListener("pointerleave",()=>a(null)),s.element.addEventListener("click",u=>{let{x:h,y:p}=s.locate(u),f=Eo(t,i,h,p);f&&(l(f),matchMedia("(max-width: 760px)").matches&&s.element.closest("section")?.querySelector(".detail")?.scrollIntoView())}),s.element.addEventListener("keydown",u=>{let[h,p]={ArrowUp:[-1,0],ArrowDown:[1,0],ArrowLeft:[0,-1],ArrowRight:[0,1]}[u.key]??[];if(h===void 0||p===void 0)return;u.preventDefault();let f=e.state.group===t.name,b=f?e.state:{layer:t.default_head[0],head:t.default_head[1]},g=(x,L)=>Math.max(0,Math.min(L-1,x)),w={layer:g(b.layer+(f?h:0),t.layers),head:g(b.head+(f?p:0),t.heads)};a(w),l(w)});let c=(u,h,p=!1)=>{let f=e.state;i=To(t,Math.max(200,u),h!==null);let b=f.group===t.name?{layer:f.layer,head:p?null:f.head}:null;s.describe(i.left,i.top,i.pitch),h!==void 0&&s.draw(i.width+4,i.height,(g,w)=>zs(g,t,i,w,h,f.statistic,b))},d=m("h2",{},ve[t.name],m("span",{class:"small"},` ${n}`));return{element:m("div",{class:"group"},d,m("div",{class:"scroller"},s.element)),draw:c}}function Al(e,t,n){let o=Object.keys(ct).flatMap(s=>{let i=e.statistics[s]?.[t]?.[n];return i==null?[]:[ct[s].says(i.toFixed(2))]}),r=e.sampled_rows?` (sampled: ${e.sampled_rows} rows)`:"";return`Layer ${t+1}, head ${n+1}: ${o.join(", ")}${r}.`}var Vt=13,Le=17,Pe=84,An=Pe+Vt*Le+4;function js(e,t,n,o){let r=new be(e,An,An,o.font),s=(d,u)=>Math.max(0,Math.min(u-Vt,Math.round(d)-(Vt>>1))),i=s(n.row,t.rows.length),a=s(n.column??0,t.columns.length),[l,c]=[Math.min(Vt,t.rows.length),Math.min(Vt,t.columns.length)];for(let d=0;d<l;d++){let u=Pe+d*Le;for(let f=0;f<c;f++){let b=t.codes[(i+d)*t.columns.length+a+f];b>0&&r.rect(Pe+f*Le,u,Le,Le,{fill:o.ramp[b]})}let h=i+d===n.row?o.accent:o.muted,p=me(t.rows[i+d].label,12,o.font,Pe-8);r.text(Pe-5,u+Le/2,p,{fill:h,size:12,anchor:"end"})}for(let d=0;d<c;d++){let u=a+d===n.column?o.accent:o.muted,h=me(t.columns[a+d].label,12,o.font,Pe-8);r.text(Pe+(d+.5)*Le,Pe-5,h,{fill:u,size:12,angle:-90})}r.rect(Pe-.5,Pe-.5,c*Le+1,l*Le+1,{stroke:o.rule}),n.column!==null&&r.rect(Pe+(n.column-a)*Le,Pe+(n.row-i)*Le,Le,Le,{stroke:o.accent,width:2})}var Kt=10,Cn=60;function Xs(e,t,n){let o=(h,p)=>h<=Cn?[0,h]:[Math.max(0,Math.min(h-Cn,Math.round(p)-Cn/2)),Cn],r=n?.row??0,s=n?.column??r*e.columns.length/Math.max(1,e.rows.length),i=o(e.rows.length,r),a=o(e.columns.length,s),l=Math.min(t,640),c=Math.min(130,l*.3),d=t<600?22:24,u=Kt*2+Math.max(i[1],a[1])*d;return{rows:i,columns:a,pitch:d,left:c,right:l-c-44,width:l,height:u}}function Ao(e,t,n,o,r){let{rows:s,columns:i}=n;for(let l=s[0];l<s[0]+s[1];l++)if(!(r&&l!==r.row))for(let c=i[0];c<i[0]+i[1];c++){let d=t.value(l,c);if(d<(r?.002:.04))continue;let u=Lt([n.left,Vs(n,l)],[n.right,Ks(n,c)]);e.path(u,{stroke:r?o.accent:o.hue,width:.5+3.5*d,opacity:Math.min(1,.08+d)})}for(let l=s[0];l<s[0]+s[1];l++){let c=me(t.rows[l].label,13,o.font,n.left-12),d=r?l===r.row?o.accent:o.muted:o.ink;e.text(n.left-8,Vs(n,l),c,{fill:d,anchor:"end"})}let a=new Map(r?We(t,r.row,5).map(l=>[l.column,l.weight]):[]);for(let l=i[0];l<i[0]+i[1];l++){let c=me(t.columns[l].label,13,o.font,n.left-12),d=a.get(l),u=d!==void 0&&d>=.01,h=r&&!u?o.muted:o.ink,p=Ks(n,l);e.text(n.right+8,p,c,{fill:h}),u&&e.text(n.width-4,p,ie(d),{fill:o.accent,size:12,anchor:"end"})}}function Qs(e,t,n){let o=Math.floor((n-Kt)/t.pitch)+t.rows[0];return o>=0&&o<e.rows.length&&n>=Kt?{row:o,column:null}:null}function Vs(e,t){return Kt+(t-e.rows[0]+.5)*e.pitch}function Ks(e,t){return Kt+(t-e.columns[0]+.5)*e.pitch}function Cl(e){return Float32Array.from(e,t=>{let n=(t-127)/127;return Math.sign(n)*(256**Math.abs(n)-1)/255})}var Co=class{constructor(t,n,o){this.samples=t;this.rate=n;this.moved=o}samples;rate;moved;position=null;audio=null;get seconds(){return this.samples.length/this.rate}play(){this.stop();let t=new AudioContext,n=t.createBuffer(1,this.samples.length,this.rate),o=this.samples.reduce((i,a)=>Math.max(i,Math.abs(a)),.001);n.getChannelData(0).set(this.samples.map(i=>.8*i/o));let r=t.createBufferSource();r.buffer=n,r.connect(t.destination),r.onended=()=>this.audio===t&&this.stop(),r.start(),this.audio=t;let s=()=>{this.audio===t&&(this.position=Math.min(t.currentTime,this.seconds),this.moved(),requestAnimationFrame(s))};s()}stop(){this.audio&&(this.audio.close(),this.audio=this.position=null,this.moved())}};function Ys(e,t,n){let{audio:o,rate:r}=e.picture??{};if(!o||!r)return null;let s=null,i=m("button",{type:"button",class:"play"},"▶ Play"),a=()=>{let l=s!==null&&s.position!==null;if(i.textContent=l?"■ Stop":"▶ Play",l&&!i.isConnected)return s.stop();n()};return i.addEventListener("click",()=>{let l=t.read(o);l&&(s??=new Co(Cl(l.codes),r,a),s.position===null?s.play():s.stop())}),t.read(o),{button:i,position:()=>s?.position??null}}var Ro=32,Zs=.75,Js=96;function Rn(e,t,n,o=640){let[r,s]=t;if(e.kind==="spectrogram"){let p=Math.max(100,Math.min(220,3*r)),f=Math.max(.6,Math.min(1.3,(o-58)/(p+Js))),b=Js*f,g={x:46,y:8,width:Math.min(n-54,1500),height:p*f};return{picture:g,weights:{...g,y:g.y+g.height+34,height:b},cell:{width:e.cell[1]*g.width/s,height:g.height},width:g.x+g.width+8,height:g.y+g.height+34+b+8}}let[i,a]=[22,38],l=n>=560,c=l?(n-Ro)/2-i:n-i-4,d=Math.min(c/s,(o-a-6)/r),u={x:i,y:a,width:s*d,height:r*d},h=l?{...u,x:i+u.width+Ro+i}:{...u,y:a+u.height+Ro+a};return{picture:u,weights:h,cell:{width:e.cell[1]*d,height:e.cell[0]*d},width:h.x+u.width+4,height:h.y+u.height+4}}function Pn(e,[t,n],o){let r=o/Math.max(n,t),s={x:0,y:0,width:n*r,height:t*r},i={width:e.cell[1]*r,height:e.cell[0]*r};return{picture:s,weights:s,cell:i,width:s.width,height:s.height}}function Po(e,t,n,o,r,s,i){Xt(e,t,n,o,r,s,i),t.kind==="image"?Pl(e,t,o,r,s,i):Dl(e,t,o,r,s,i)}function Xt(e,t,n,o,r,s,i){let{x:a,y:l,width:c,height:d}=s.picture;e.pixels(a,l,c,d,Rl(t,n,i));let u=t.kind==="image",h=o.some(p=>p>0);o.forEach((p,f)=>{let b=Math.sqrt(p/r),g=u?Zs*b:h?Zs*(1-b):0,w=St(t,s,s.picture,f),x=u?i.tint:i.page;g>.01&&e.rect(w.x,w.y,w.width,w.height,{fill:x,opacity:g})}),ni(e,s.picture,i)}function Do(e,t,n,o,r,s){let i=(a,l,c,d)=>{let u=St(t,n,a,l);e.rect(u.x,u.y,u.width,u.height,{stroke:c,width:d})};for(let a of[n.picture,n.weights])r!==null&&(i(a,r,o.page,5),i(a,r,o.accent,2.5)),s!==null&&(i(a,s,o.page,3),i(a,s,o.ink,1))}function ei(e,t,n,o,r){let{x:s,width:i}=n.picture,a=s+Math.min(i,r/(t.seconds??1)*n.cell.width),[l,c]=[n.picture.y,n.weights.y+n.weights.height];e.path(`M${a} ${l}V${c}`,{stroke:o.page,width:5}),e.path(`M${a} ${l}V${c}`,{stroke:o.ink,width:2})}function ti(e,t,n,o){for(let r of[t.picture,t.weights]){if(n<r.x||o<r.y||n>=r.x+r.width||o>=r.y+r.height)continue;let s=Math.min(e.grid[1]-1,Math.floor((n-r.x)/t.cell.width));return(e.grid[0]===1?0:Math.min(e.grid[0]-1,Math.floor((o-r.y)/t.cell.height)))*e.grid[1]+s}return null}function St(e,t,n,o){let r=o%e.grid[1],s=Math.floor(o/e.grid[1]),i=n.x+r*t.cell.width,a=e.grid[0]===1?n.height:t.cell.height;return{x:i,y:n.y+s*a,width:Math.min(t.cell.width,n.x+n.width-i),height:a}}function Rl(e,{codes:t,shape:n},o){let[r,s,i]=n,a=new Uint32Array(s*r),l=Uint32Array.from({length:256},(c,d)=>e.kind==="image"?4278190080|d*65793:Qe(o.page,o.ink,d/255));for(let c=0;c<a.length;c++)a[c]=i<3?l[t[c*i]]:4278190080|t[c*i+2]<<16|t[c*i+1]<<8|t[c*i];return{width:s,height:r,data:a}}function Pl(e,t,n,o,r,s){n.forEach((c,d)=>{let u=St(t,r,r.weights,d),h=s.ramp[Math.round(255*Math.sqrt(c/o))];if(e.rect(u.x,u.y,u.width,u.height,{fill:h}),u.width<30||u.height<14)return;let[p,f]=[u.x+u.width/2,u.y+u.height/2],b=c<.001?"":ie(c).slice(1);e.text(p,f,b,{fill:nn(h),size:11,anchor:"middle"})}),ni(e,r.weights,s);let i=[[r.picture,"What the model read"],[r.weights,"Weight of each patch"]],{width:a,height:l}=r.cell;for(let[c,d]of i){e.text(c.x,c.y-28,d,{fill:s.ink,size:13,weight:600});let u={fill:s.muted,size:11},h=Math.ceil(18/Math.min(a,l));for(let p=0;p<t.grid[1];p+=h)e.text(c.x+(p+.5)*a,c.y-9,String(p),{...u,anchor:"middle"});for(let p=0;p<t.grid[0];p+=h)e.text(c.x-6,c.y+(p+.5)*l,String(p),{...u,anchor:"end"})}}function Dl(e,t,n,o,r,s){let[i,a]=[r.picture,r.weights],l={fill:s.muted,size:11,anchor:"end"},c=(t.rate??0)/2e3;c&&e.text(i.x-6,i.y+6,`${c<10?Number(c.toFixed(1)):Math.round(c)} kHz`,l),e.text(i.x-6,i.y+i.height/2,"mel",l),e.text(i.x-6,i.y+i.height-6,"0",l);let d=i.width/r.cell.width*(t.seconds??1),u=Fl(d,i.width/60);for(let p=0;p*u<=d*1.0001;p++){let f=i.x+p*u*i.width/d;e.path(`M${f} ${i.y+i.height}v4`,{stroke:s.muted});let b=f+16>i.x+i.width?"end":p?"middle":"start",g=`${Number((p*u).toFixed(3))} s`;e.text(f,i.y+i.height+13,g,{...l,anchor:b})}let h=s.tint;n.forEach((p,f)=>{let b=St(t,r,a,f),g=p/o*a.height,w=b.width>4?1:0;e.rect(b.x,b.y+a.height-g,b.width-w,g,{fill:h})}),e.path(`M${a.x} ${a.y+a.height+.5}h${a.width}`,{stroke:s.muted}),e.text(a.x-6,a.y+5,ie(o),l),e.text(a.x-6,a.y+a.height/2,"weight",l),e.text(a.x-6,a.y+a.height-4,"0",l)}function Fl(e,t){let n=10**Math.floor(Math.log10(e/Math.max(1,t)));return n*([1,2,5].find(o=>o*n*t>=e)??10)}function ni(e,{x:t,y:n,width:o,height:r},s){e.rect(t-.5,n-.5,o+1,r+1,{stroke:s.rule})}var Hl=72,oi=e=>e.attention.filter(t=>t.columns==="source"),Dn=e=>!!e.picture&&oi(e).length>0,ri=e=>({name:e,title:"Look",applies:t=>t.picture?.kind===e&&Dn(t),mount:_l}),si=ri("image"),ii=ri("spectrogram");function _l(e){let{doc:t,store:n,blobs:o}=e,r=t.picture,s=r.kind==="image",[i,a]=s?["patch","patches"]:["time step","time steps"],l=r.grid[0]*r.grid[1],c=oi(t),d=lt(e,64),u=Sn(e),h=m("p",{class:"small",role:"status"}),p=s?"word":"token",f={source:`${i} attends to ${a}`,target:`generated ${p} attends to ${a}`},b=c.map(F=>En(e,F,f[F.rows],h)),g=m("div",{class:"overview"},...b.map(F=>F.element),h),w=m("h2"),x=m("p",{class:"fact"}),L=m("div",{class:"controls"}),$=m("div",{class:"chips",role:"group","aria-label":"What attends"}),M=new ce(`Attention over the ${r.kind}. Arrow keys move what attends, Escape returns.`),T=m("canvas",{role:"img","aria-label":"Color key of the weights, on a square-root scale"}),A=m("div",{class:"key"},T,m("span",{class:"small"},"Weight, square-root scale.")),k=m("p",{class:"readout",role:"status","aria-live":"polite"}),v=m("p",{class:"small"}),E=m("div",{class:"detail"},w,x,L,m("div",{class:"scroller"},$),k,m("div",{class:"scroller"},M.element),A,v),S=m("section",{class:"heads","aria-label":s?"Image":"Spectrogram"},g,E),O=Ys(t,o,()=>oe(n.state,R())),H=null,P=null,y=c.map(F=>fe(qe(t,F).rows,s&&F.rows==="target",!0)),C=F=>y[c.indexOf(F)],R=()=>c.find(F=>F.name===n.state.group)??c[0],I=()=>P.subarray(r.first,r.first+l),G=()=>Math.max(1e-9,...I()),D=F=>{let{query:j}=n.state;return j!==null&&F===R()?j:(F.rows==="target"?!s:r.first>0)?0:"mean"},N=()=>{let F=D(R());return R().rows==="target"||F==="mean"||F<r.first?null:F-r.first},z=F=>{let{x:j,y:Q}=M.locate(F);return H&&ti(r,H,j,Q)};M.element.addEventListener("pointermove",F=>{let j=z(F);j!==(n.state.hover?.column??null)&&n.set({hover:j===null?null:{row:0,column:j}})}),M.element.addEventListener("pointerleave",()=>n.set({hover:null})),M.element.addEventListener("click",F=>{let j=z(F);j===null||R().rows==="target"||n.set({query:j===N()?null:r.first+j})}),M.element.addEventListener("keydown",F=>{if(F.key==="Escape")return n.set({query:null});let j=R().rows==="target",Q=j?1:r.grid[1],J={ArrowLeft:-1,ArrowRight:1,ArrowUp:-Q,ArrowDown:Q}[F.key];if(J===void 0)return;F.preventDefault();let se=D(R()),ne=j?0:r.first,ee=C(R()).findIndex(ye=>ye.members[0]===se),le=C(R())[ee<ne?ne:ee+J]?.members[0];le!==void 0&&le>=ne&&n.set({query:le,hover:null})});function q(F,j,Q,J){let se=d.read(F,j,Q);if(!se)return se;let ne=F.column_count,ee=new Float32Array(ne),ye=C(F).filter($e=>J==="mean"||$e.members.includes(J)).flatMap($e=>$e.members);for(let $e of ye)for(let Oe=0;Oe<ne;Oe++)ee[Oe]+=Ie[se.codes[$e*ne+Oe]]/ye.length;return ee}function V(F,j,Q){let se=(j.meanOfHeads?Array.from({length:F.heads},(ee,le)=>le):[j.head]).map(ee=>q(F,j.layer,ee,Q)),ne=se.find(ee=>!ee);return se.some(ee=>!ee)?ne:Float32Array.from({length:F.column_count},(ee,le)=>se.reduce((ye,$e)=>ye+$e[le]/se.length,0))}function _(F){if(!u)return null;if(Object.keys(F.maps).length<F.layers*F.heads)return o.read(F.thumbnails);let j=new Uint8Array(F.layers*F.heads*l);for(let Q=0;Q<F.layers*F.heads;Q++){let J=q(F,Math.floor(Q/F.heads),Q%F.heads,D(F));if(!J)return;let se=J.subarray(r.first,r.first+l),ne=Math.max(1e-9,...se);se.forEach((ee,le)=>j[Q*l+le]=ft(ee/ne))}return{shape:[F.layers,F.heads,...r.grid],codes:j,scale:1}}function U(F){let j=n.state,Q=R();if(j.group!==Q.name)return n.set({group:Q.name,layer:Q.default_head[0],head:Q.default_head[1],query:null});(F.size===0||[...F].some(J=>J!=="hover"))&&W(j,Q),oe(j,Q)}function W(F,j){let Q=ae(),J=o.read(r.pixels),se=V(j,F,D(j));P=se??null,b.forEach(($e,Oe)=>$e.draw(g.clientWidth,_(c[Oe]),F.meanOfHeads));let ne=F.meanOfHeads?`layer ${F.layer+1} of ${j.layers}, mean of ${j.heads} heads`:sn(j,F.layer,F.head);w.textContent=`${rn(t,j)} (${ne})`,K(L,...ht(j)),K($,...pe(j)),x.textContent=P?re():se===null?"This file has no complete map of this head.":"";let ee=d.problem(j,F.layer,F.head);if(v.textContent=[ee,P&&(s?`Full color is the largest weight here, ${ie(G())}; in Heads it is 1.`:`Faded where the weight is small; clear at the largest, ${ie(G())}.`),"Attention shows what a head read, not why the model decided."].filter(Boolean).join(" "),A.hidden=!s||!P,!J)return;H=Rn(r,J.shape,Math.max(260,E.clientWidth-4),Xe(M.element));let{x:le,y:ye}=H.picture;M.describe(le,ye,H.cell.width),M.draw(H.width,H.height,$e=>Po($e,r,J,P?I():new Float32Array(l),P?G():1,H,Q)),P&&cn(new be(T,256,30,Q.font),Q,256,G())}function oe(F,j){let Q=F.hover?.column??null;if(H&&M.drawOverlay(H.width,H.height,(J,se)=>{let ne=Q!==null&&Q<l?Q:null;Do(J,r,H,se,N(),ne);let ee=O?.position()??null;ee!==null&&ei(J,r,H,se,ee)}),!P||!H){k.textContent=x.textContent||"Reading the map …";return}k.textContent=ue(j,Q)}let te=F=>de(t.sequences.source?.[r.first+F]);function B(F){let j=D(F);if(j==="mean")return F.rows==="target"?`All generated ${p}s (mean)`:`All ${a} (mean)`;let Q=qe(t,F).rows[j],J=C(F).find(({members:ne})=>ne.includes(j)),se=J&&J.members.length>1?J.label:de(Q);return F.rows==="target"?`Generating ${X(se)}, the decoder`:Q?.role==="special"?`The ${se}`:se[0].toUpperCase()+se.slice(1)}function re(){let F=[...I()].sort((ne,ee)=>ee-ne),j=F.reduce((ne,ee)=>ne+ee,0),[Q,J]=[0,0];for(;Q<l&&J<j/2;)J+=F[Q++];return`${Q} of ${l} ${l===1?i:a} ${Q===1?"holds":"hold"} half of the weight on the ${r.kind}.`}function ue(F,j){let Q=B(F),J=D(F)==="mean"?"attend":"attends";if(j!==null&&j<l){let le=F.rows==="target"?"":` Click to see what ${te(j)} attends to.`;return`${Q} ${J} to ${te(j)}: ${ie(I()[j])}.${le}`}let se=Array.from(I(),(le,ye)=>({weight:le,cell:ye})).sort((le,ye)=>ye.weight-le.weight).slice(0,3).map(({weight:le,cell:ye})=>`${te(ye)} (${ie(le)})`),ne=r.first>0&&F.columns==="source"?` The class token holds ${ie(P[0])}.`:"",ee=` Equal weights would be ${ie(1/F.column_count)}.`;return`${Q} ${J} most to ${se.join(", ")}.${ne}${ee}`}function pe(F){let j=D(F),Q=F.rows==="target",J=(ee,le)=>m("button",{type:"button","aria-pressed":String(ee===j),onclick:()=>n.set({query:ee})},s&&Q&&De(F,ee),le),se=J("mean",Q?`All ${p}s (mean)`:`All ${a} (mean)`),ne=C(F).flatMap(({label:ee,members:[le]})=>Q||le<r.first||le===j?[J(le,ee)]:[]);return[se,...ne]}function De(F,j){let Q=o.read(r.pixels),J=V(F,n.state,j)?.subarray(r.first,r.first+l);if(!Q||!J)return null;let se=ae(),ne=m("canvas",{"aria-hidden":"true"}),ee=Pn(r,Q.shape,Hl),le=new be(ne,ee.width,ee.height,se.font);return Xt(le,r,Q,J,Math.max(1e-9,...J),ee,se),ne}function ht(F){let{state:j}=n,Q=c.map(J=>[J.name,ve[J.name]]);return[O?.button??null,Q.length>1?Te("Attention",Q,F.name,J=>{let[se,ne]=c.find(ee=>ee.name===J).default_head;n.set({group:J,layer:se,head:ne,query:null,hover:null,locked:null})}):null,Me("Mean of the heads",j.meanOfHeads,J=>n.set({meanOfHeads:J})),he(()=>`${r.kind}.${F.name}.${j.layer}.${j.meanOfHeads?"mean":j.head}`,()=>H,(J,se)=>{let ne=o.read(r.pixels);!ne||!P||!H||(Po(J,r,ne,I(),G(),H,se),Do(J,r,H,se,N(),null))})]}return{element:S,update:U}}var Ol=80,Il={"encoder.self":["the token that attends","what it attends to"],"decoder.self":["the token that is read","what it attends to"],"decoder.cross":["the token being generated","the source"]},li={name:"heads",title:"Look",applies:e=>e.attention.length>0&&!Dn(e),mount:ui},ci={name:"heads",title:"Heads",level:2,applies:e=>e.attention.length>0&&Dn(e),mount:ui};function ui(e){let{doc:t,store:n,blobs:o,live:r}=e,s=Sn(e),i=lt(e),a=new ke(_=>{let[U,W,oe,te]=_.split("|");return r.row(U,Number(W),Number(oe),Number(te))},()=>n.notify(["hover"]),64),l,c=m("div"),d=m("p",{class:"small",role:"status"}),u=t.attention.map(_=>En(e,_,Wl(_),d)),h=m("div",{class:"overview"},c,...u.map(_=>_.element),d),p=m("h2"),f=m("p",{class:"fact"}),b=m("div",{class:"controls"}),g=new ce("Attention of the chosen head. Arrow keys move, Enter pins, Escape releases."),w=m("div",{class:"scroller"},g.element),x=m("canvas",{class:"lens","aria-hidden":"true"}),L=m("div",{class:"stage-row"},w,x),$=m("canvas",{role:"img"}),M=m("span",{class:"small"}),T=m("div",{class:"key"},$,M),A=m("p",{class:"readout",role:"status","aria-live":"polite"}),k=m("p",{class:"small"}),v=m("div",{class:"detail"},p,f,b,A,L,T,k),E=m("section",{class:"heads","aria-label":"Heads"},h,v),S=null,O=null,H=null,P=0,y=()=>n.state.locked??n.state.hover,C=()=>({stretched:n.state.stretched,numbers:n.state.numbers}),R=_=>{let{x:U,y:W}=g.locate(_);return S?n.state.drawing==="lines"?H&&Qs(S,H,W):O&&Ue(S,O,U,W):null};g.element.addEventListener("pointermove",_=>{let[U,W]=[R(_),n.state.hover];(U?.row!==W?.row||U?.column!==W?.column)&&n.set({hover:U})}),g.element.addEventListener("pointerleave",()=>n.set({hover:null})),g.element.addEventListener("click",_=>{let[U,W]=[R(_),n.state.locked],oe=U&&W&&U.row===W.row&&U.column===W.column;n.set({locked:oe?null:U})}),g.element.addEventListener("keydown",_=>{if(!S||!S.rows.length)return;let U=ql(y(),_.key,S,n.state.drawing==="lines");U!==void 0&&(_.preventDefault(),n.set({locked:U,hover:null}))});function I(_,U){let W=i.read(_,U.layer,U.head);if(W===void 0)return null;if(W)return{codes:W.codes,columns:W.shape[1],isThumbnail:!1};let oe=o.read(_.thumbnails);if(!oe)return null;let[te,B]=oe.shape.slice(2),re=(U.layer*_.heads+U.head)*te*B;return{codes:oe.codes.subarray(re,re+te*B),columns:B,isThumbnail:!0}}function G(_,U){let W=I(U,_);if(!W)return S=null,!1;if(W.isThumbnail){let te=B=>Array.from({length:B},(re,ue)=>({label:"",special:!1,members:[ue]}));return S=je(W.codes,W.columns,te(W.codes.length/W.columns),te(W.columns)),!0}let oe=qe(t,U);return S=je(W.codes,W.columns,fe(oe.rows,_.words,_.specials),fe(oe.columns,_.words,_.specials)),!1}function D(_){let U=n.state,W=an(t,U.group);if(!(_.size>0&&[..._].every(te=>te==="hover"||te==="locked"))){P=Math.max(260,v.clientWidth);let te=G(U,W);u.forEach((pe,De)=>pe.draw(h.clientWidth,s?o.read(t.attention[De].thumbnails):null)),s||K(c,Bl(e)),p.textContent=`${rn(t,W)} (${sn(W,U.layer,U.head)})`,f.textContent=qs(t,W,U.layer,U.head),K(b,...Nl(e,V));let[B,re]=Il[Fn(W)||W.name!=="decoder.cross"?W.name:"encoder.self"];M.textContent=`${ai(U)}. Rows: ${B}. Columns: ${re}.`;let ue=i.problem(W,U.layer,U.head);K(k,...zl(t,W,U,te,ue)),N(U,te)}z(U,W)}function N(_,U){let W=ae();if(T.hidden=_.drawing==="lines",cn(new be($,256,30,W.font),W,256,_.stretched?null:1),$.setAttribute("aria-label",`Color key: ${ai(_)}`),!S)return;let oe=Math.max(S.rows.length,S.columns.length)>96,te=oe&&_.drawing==="heatmap"&&P>760?An:0;x.hidden=te===0;let B=P-(te?te+16:0),re=Xe(L,44*S.rows.length);O=U?{...He(S,B,W,re),labeled:!1,left:12,top:12}:He(S,Math.min(B,oe?720:B),W,re),_.drawing==="heatmap"&&(g.describe(O.left,O.top,O.cell),g.draw(O.width,O.height,ue=>Ae(ue,S,O,W,{...C(),pixelRatio:(window.devicePixelRatio||1)*Ne()})))}function z(_,U){let W=ae(),oe=S&&Fe(y(),S);oe&&q(_,U,oe.row),S&&_.drawing==="lines"?(H=Xs(S,P-6,_.locked),g.draw(H.width,H.height,te=>Ao(te,S,H,W,oe)),g.drawOverlay(H.width,H.height,()=>{})):S&&O&&(g.drawOverlay(O.width,O.height,te=>{oe&&Ze(te,S,O,W,oe,_.locked!==null,C())}),x.hidden||js(x,S,oe??{row:0,column:0},W)),A.textContent=oe?Ul(U,S,oe):S?Gl(S):"Reading the map …"}function q(_,U,W){if(clearTimeout(l),!r.available||!S||S.isExact(W))return;let oe=S.rows[W].members.map(te=>`${U.name}|${_.layer}|${_.head}|${te}`);if(oe.every(te=>a.has(te))){let te=oe.map(B=>a.read(B));te.every(B=>B!==void 0)&&S.refine(W,te)}else l=setTimeout(()=>oe.forEach(te=>a.read(te)),Ol)}function V(){return he(()=>`${n.state.group}.${n.state.layer}.${n.state.head}`,()=>n.state.drawing==="lines"?H:O,(_,U)=>{S&&(n.state.drawing==="lines"?Ao(_,S,H,U,y()):Ae(_,S,O,U,C()))})}return{element:E,update:D}}function ai({stretched:e}){return e?"Share of the row's largest weight, square-root scale":"Weight from 0 to 1, square-root scale"}function Bl({doc:e,store:t}){let n=Object.keys(ct).filter(i=>e.attention.some(a=>a.statistics[i]?.flat().some(l=>l!==null))).map(i=>[i,ct[i].title]),{statistic:o}=t.state,r=Math.max(...e.attention.map(i=>So(i,o))),s=`Page color: 0. Full color: ${r.toFixed(r===1?0:1)} ${ct[o].unit}`;return m("div",{},Se("Color",n,o,i=>t.set({statistic:i})),m("p",{class:"small"},`${s.trim()}.`))}function Nl({doc:e,store:t},n){let o=t.state,r={hover:null,locked:null},s=Object.values(e.sequences),i=s.some(l=>l.some((c,d)=>ze(l,d))),a=s.flat().some(l=>l.role==="special");return[Te("Drawing",[["heatmap","Heatmap"],["lines","Lines"]],o.drawing,l=>t.set({drawing:l})),i?Me("Words",o.words,l=>t.set({words:l,...r})):null,a?Me("Special tokens",o.specials,l=>t.set({specials:l,...r})):null,Me("Numbers",o.numbers,l=>t.set({numbers:l})),Me("Stretch rows",o.stretched,l=>t.set({stretched:l})),n()]}function Fn(e){return e.name==="decoder.cross"&&e.row_start>0}function Wl(e){return e.name==="decoder.cross"&&!Fn(e)?"query attends to keys":hr[e.name]}function Ul(e,t,n){let o=(p,f)=>p.label?X(p.label):`cell ${f}`,r=o(t.rows[n.row],n.row),s=t.isExact(n.row)?p=>p.toFixed(4):ie,i=We(t,n.row,4).filter(p=>p.weight>=.005).map(p=>`${o(t.columns[p.column],p.column)} ${s(p.weight)}`),a=Fn(e)?`Generating ${r}`:r,l=t.hidden(n.row),c=l>=.01?` Hidden special tokens hold ${s(l)}.`:"",d=i.length?`attends most to ${i.join(", ")}.`:"attends to nothing that is shown.",u=Fn(e)?", the decoder ":" ";if(n.column===null)return`${a}${u}${d}${c}`;let h=s(t.value(n.row,n.column));return`${a} → ${o(t.columns[n.column],n.column)}: ${h}. The row ${d}${c}`}function Gl(e){return e.rows.length?Ee("a row","to read its weights"):"All tokens here are special tokens, which are hidden."}function zl(e,t,n,o,r){let s=t.errors[n.layer]?.[n.head],i=[];if(r&&i.push(r),o&&i.push("This file has only the thumbnail of this head: each cell is the maximum of the weights that it covers."),s!=null){let a=s===0?"Exact.":`Exact to ${s.toExponential(0).replace("e-","e−")}.`;i.push(m("span",{title:"Largest difference between weights × values and what the model computed: max |A·V − output|"},a))}return t.sampled_rows&&i.push(`Statistics and thumbnails are sampled: ${t.sampled_rows} query rows.`),n.words&&i.push("Words: columns are sums over subwords, rows are means."),pr(e)&&i.push(dr),i.flatMap(a=>[a," "])}function ql(e,t,n,o){if(t==="Escape")return null;let s={ArrowUp:[-1,0],ArrowDown:[1,0],ArrowLeft:[0,-1],ArrowRight:[0,1],PageUp:[-10,0],PageDown:[10,0],Enter:[0,0]}[t];if(!s)return;if(!e)return{row:0,column:o?null:0};let i=(a,l)=>Math.max(0,Math.min(l-1,a));return{row:i(e.row+s[0],n.rows.length),column:o?null:i((e.column??0)+s[1],n.columns.length)}}var Hn=40,xe=90,di={name:"masks",title:"Masks",level:2,applies:e=>e.attention.length>0&&e.masks.length>0&&(!e.picture||e.masks.some(t=>t.terms.length>0)),mount:jl},pi={causal:{label:()=>"causal: no later token",reason:"it comes later"},window:{label:e=>`window: fewer than ${e.width} tokens away`,reason:"it is outside the window"},padding:{label:()=>"padding: only valid tokens",reason:"it is padding"},documents:{label:()=>"documents: only the same text",reason:"it belongs to another text"}};function hi(e,t,n){return e.kind==="causal"?n<=t:e.kind==="window"?Math.abs(t-n)<(e.width??1/0):e.kind==="padding"?e.valid?.[n]??!0:e.documents?.[t]===e.documents?.[n]}function jl({doc:e,store:t}){let n=m("p",{class:"fact"}),o=m("div",{class:"controls"}),r=m("p",{class:"readout",role:"status","aria-live":"polite"}),s=new ce("The mask. Arrow keys move."),i=m("div",{class:"card"}),a=m("p",{class:"small"}),l=m("section",{class:"masks","aria-label":"Masks"},m("h2",{},"Who may attend to whom"),n,o,r,m("div",{class:"columns"},m("div",{},m("div",{class:"scroller"},s.element),a),m("div",{},i))),c={cell:20,width:0,height:0,rows:[],columns:[]},d=()=>e.masks.find(f=>f.group===t.state.mask)??e.masks[0],u=()=>t.state.locked??t.state.hover,h=f=>{let{x:b,y:g}=s.locate(f),[w,x]=[Math.floor((g-xe)/c.cell),Math.floor((b-xe)/c.cell)];return w>=0&&x>=0&&w<c.rows.length&&x<c.columns.length?{row:w,column:x}:null};s.element.addEventListener("pointermove",f=>{let[b,g]=[h(f),t.state.hover];(b?.row!==g?.row||b?.column!==g?.column)&&t.set({hover:b})}),s.element.addEventListener("pointerleave",()=>t.set({hover:null})),s.element.addEventListener("click",f=>t.set({locked:t.state.locked?null:h(f)})),s.element.addEventListener("keydown",f=>{if(f.key==="Escape")return t.set({locked:null});let b={ArrowUp:[-1,0],ArrowDown:[1,0],ArrowLeft:[0,-1],ArrowRight:[0,1]}[f.key];if(!b)return;f.preventDefault();let g=u(),w=(L,$)=>Math.max(0,Math.min($-1,L)),x=g?{row:w(g.row+b[0],c.rows.length),column:w((g.column??0)+b[1],c.columns.length)}:{row:0,column:0};t.set({locked:x,hover:null})});function p(){let{state:f}=t,b=d(),g=an(e,b.group),w=qe(e,g),x=b.terms.filter(E=>!f.hiddenTerms.includes(E.kind)),[L,$]=[fe(w.rows.slice(0,Hn),!1,!0),fe(w.columns.slice(0,Hn),!1,!0)],M=(Math.max(260,l.clientWidth)-xe-20)/Math.max(1,$.length),T=Math.max(12,Math.min(28,Math.floor(M)));c={cell:T,rows:L,columns:$,width:xe+$.length*T+40,height:xe+L.length*T+4},n.textContent=Vl(b,f);let A=e.masks.map(E=>[E.group,ve[E.group]]);K(o,A.length>1?Te("Attention",A,b.group,E=>t.set({mask:E,hiddenTerms:[],locked:null})):null,...b.terms.map(E=>Me(pi[E.kind].label(E),!f.hiddenTerms.includes(E.kind),S=>t.set({hiddenTerms:S?f.hiddenTerms.filter(O=>O!==E.kind):[...f.hiddenTerms,E.kind]}))),he(()=>`mask.${b.group}`,()=>c,(E,S)=>mi(E,c,x,S,null)));let k=Fe(u(),c);s.describe(xe,xe,T),s.draw(c.width,c.height,(E,S)=>mi(E,c,x,S,k)),s.drawOverlay(c.width,c.height,()=>{}),r.textContent=k?Kl(L,$,x,k):Ee("a cell","to read whether its row may attend to its column"),i.hidden=b.leak===null,b.leak&&K(i,...Xl(b.leak));let v=Math.max(w.rows.length,w.columns.length)>Hn;a.textContent=v?`The first ${Hn} tokens are shown.`:""}return{element:l,update:p}}function mi(e,t,n,o,r){let{cell:s,rows:i,columns:a}=t;i.forEach((l,c)=>{let d=xe+c*s,u=c===r?.row?o.accent:o.muted;e.text(xe-6,d+s/2,me(l.label,12,o.font,xe-10),{fill:u,size:12,anchor:"end"}),a.forEach((h,p)=>{let f=n.every(g=>hi(g,c,p)),b=xe+p*s;f?e.rect(b+1,d+1,s-2,s-2,{fill:o.hue,radius:2}):e.rect(b+s/2-1.5,d+s/2-1.5,3,3,{fill:o.rule,radius:1.5})})}),a.forEach((l,c)=>{let d=c===r?.column?o.accent:o.muted,u=me(l.label,12,o.font,xe-10),[h,p]=[xe+(c+.5)*s,ge(u,12,o.font)<=s-2];p?e.text(h,xe-10,u,{fill:d,size:12,anchor:"middle"}):e.text(h,xe-6,u,{fill:d,size:12,angle:-53})}),r&&r.column!==null&&e.rect(xe+r.column*s,xe+r.row*s,s,s,{stroke:o.accent,width:2.5})}function Vl(e,t){if(e.terms.length===0)return"No mask: every row attends to every column.";let n=e.terms.filter(o=>t.hiddenTerms.includes(o.kind));return n.length?`What if: no ${n.map(o=>o.kind).join(", no ")} mask (the model does use it).`:e.terms.length===1&&e.terms[0].kind==="causal"?"Causal: a token attends to itself and to earlier tokens only.":`A row attends to a column if all terms allow it: ${e.terms.map(o=>o.kind).join(", ")}.`}function Kl(e,t,n,o){let[r,s]=[o.row,o.column??0],i=n.filter(l=>!hi(l,r,s)),a=[X(e[r].label),X(t[s].label)];return i.length===0?`${a[0]} may attend to ${a[1]}.`:`${a[0]} may not attend to ${a[1]}: ${i.map(l=>pi[l.kind].reason).join(" and ")}.`}function Xl(e){let t=s=>s<.001?s.toExponential(1):s.toFixed(2),n=e.later_change===0?"The test shows nothing: replacing later tokens changed no prediction.":e.change<1e-4?"No future leaks.":"The future leaks!",o=e.prefix===1?"First prediction":`First ${e.prefix} predictions`,r=e.change===0?`${o} unchanged when the rest is replaced`:`${o} ${e.change<1e-4?"unchanged":"changed"} when the rest is replaced (by up to ${t(e.change)})`;return[m("p",{},m("strong",{},`Leak test: ${n}`)),m("p",{},`${r}.`),m("p",{class:"small"},`The model read the same beginning with ${e.replaced} other tokens after it; their own predictions changed by up to ${t(e.later_change)}. Numbers are changes of a log-probability.`)]}var gi=20,ut=46,bi=56,Ql=6,wi={name:"merges",title:"BPE merges",level:2,applies:e=>e.merges!==null,mount:Yl};function Fo(e,t,n){let o=t===0?e.start:e.steps[t-1].words,r=t===0?null:e.steps[t-1].left+e.steps[t-1].right,s=[],i=0;return o.forEach((a,l)=>{let c=bi;for(let d of a){let u=Y(d,24),h={text:u,x:c,y:l*ut+4,width:ge(u,gi,n.font)+20,isNew:d===r};s.push(h),c+=h.width+Ql}i=Math.max(i,c)}),{boxes:s,width:i+4,height:o.length*ut+4}}function fi(e,t,n,o){t.counts.forEach((r,s)=>e.text(bi-12,s*ut+4+(ut-8)/2,`${r} ×`,{fill:o.muted,anchor:"end"}));for(let{text:r,x:s,y:i,width:a,isNew:l}of n.boxes){let c=i+(ut-8)/2;e.rect(s,i,a,ut-8,l?{fill:o.hue,opacity:.18,radius:6}:{radius:6}),e.rect(s,i,a,ut-8,{stroke:l?o.hue:o.rule,width:1.5,radius:6});let d={fill:l?o.hue:o.ink,size:gi,weight:l?600:400};e.text(s+a/2,c,r,{...d,anchor:"middle"})}}function Yl({doc:e,store:t}){let n=e.merges,o=m("p",{class:"fact"}),r=m("div",{class:"chips",role:"group","aria-label":"Merges"}),s=m("p",{class:"readout",role:"status","aria-live":"polite"}),i=new ce("Words as symbols. Right and left arrow keys go one merge on or back."),a=p=>t.set({merge:Math.max(0,Math.min(n.steps.length,p))});i.element.addEventListener("keydown",p=>{let f={ArrowRight:1,ArrowDown:1,ArrowLeft:-1,ArrowUp:-1}[p.key];f&&(p.preventDefault(),a(t.state.merge+f))}),i.element.addEventListener("click",()=>a(t.state.merge+1));let l=m("button",{type:"button",onclick:()=>a(t.state.merge-1)},"Back"),c=m("button",{type:"button",onclick:()=>a(t.state.merge+1)},"Next merge"),d=he(()=>`merge.${t.state.merge}`,()=>Fo(n,t.state.merge,ae()),(p,f)=>fi(p,n,Fo(n,t.state.merge,f),f)),u=m("section",{class:"merges","aria-label":"BPE merges"},m("h2",{},"How a BPE vocabulary is learned"),o,m("div",{class:"controls"},l,c,d),m("div",{class:"scroller"},i.element),s,m("h3",{},"Merges in their order"),r);function h(p){let f=t.state.merge,b=Fo(n,f,ae());o.textContent=Zl(n,f);let g=new Set((f===0?n.start:n.steps[f-1].words).flat()),w=b.boxes.length;s.textContent=`${w} symbols spell the ${n.words.length} words, ${g.size} of them distinct.`,i.draw(b.width,b.height,(x,L)=>fi(x,n,b,L)),l.disabled=f===0,c.disabled=f===n.steps.length,K(r,...n.steps.map(({left:x,right:L},$)=>m("button",{type:"button","aria-pressed":String($+1===f),onclick:()=>a($+1)},Y(x+L,24))))}return{element:u,update:h}}function Zl(e,t){if(t===0)return"Before the first merge every character is a symbol; ▁ ends a word.";let{left:n,right:o,count:r}=e.steps[t-1],s=`${X(Y(n,24))} + ${X(Y(o,24))}`,i=r===1?"once":r===2?"twice":`${r} times`;return`Merge ${t} of ${e.steps.length}: ${s} becomes ${X(Y(n+o,24))}, a most frequent pair: ${i}.`}function xi(e,t){let[n,o]=[e.width,e.base],r=new Float64Array(t*n);for(let s=0;s<t;s++)for(let i=0;i<n/2;i++){let a=s/o**(2*i/n),[l,c]=e.interleaved?[2*i,2*i+1]:[i,i+n/2];r[s*n+l]=Math.sin(a),r[s*n+c]=Math.cos(a)}return{rows:t,columns:n,values:r}}function Ho(e,t){let n=e.key_dim/2,o=new Float64Array(t*n);for(let r=0;r<t;r++)for(let s=0;s<n;s++)o[r*n+s]=Math.cos(r*e.base**(-s/n));return{rows:t,columns:n,values:o}}function yi(e,t){let n=Ho(e,t);return Array.from({length:t},(o,r)=>{let s=0;for(let i=0;i<n.columns;i++)s+=n.values[r*n.columns+i];return[r,s/n.columns]})}function _o({rows:e,columns:t,values:n}){let o=new Float64Array(e*e);for(let r=0;r<e;r++)for(let s=0;s<e;s++){let i=0;for(let a=0;a<t;a++)i+=n[r*t+a]*n[s*t+a];o[r*e+s]=i}return{rows:e,columns:e,values:o}}function Oo(e,t){return Array.from({length:t/2},(n,o)=>[o,2*Math.PI*e**(2*o/t)])}var ki={name:"positions",title:"Positions",level:2,applies:e=>e.positions.some(t=>t.kind!=="none"),mount:ec},_n=64,Jl={none:"No position encoding.",sinusoidal:"Sinusoidal: every position has a vector of sines and cosines, from short to long wavelengths.",learned:"Learned: every position has a trained vector.",rotary:"Rotary: queries and keys are turned by an angle that grows with the position, so that a weight depends on the distance.",alibi:"ALiBi: each head subtracts slope × distance from its scores.",relative:"Relative: each head adds a trained bias for each distance."};function ec({doc:e,store:t,blobs:n}){let o=m("p",{class:"fact"}),r=m("div",{class:"controls"}),s=m("div",{class:"columns figures"}),i=m("p",{class:"small"}),a=m("section",{class:"positions","aria-label":"Positions"},m("h2",{},"How the model knows the order"),o,r,s,i),l=e.positions.map(u=>[u.stack,u.stack==="encoder"?"Encoder":"Decoder"]);function c(){let u=e.positions.find(g=>g.stack===t.state.stack)??e.positions[0];o.textContent=Jl[u.kind],K(r,l.length>1?Te("Stack",l,u.stack,g=>t.set({stack:g})):null);let h=u.max_positions===null?"No length limit.":`At most ${u.max_positions} tokens; this text has ${u.length}.`;i.textContent=`Blue is above zero, purple below. ${u.kind==="none"?"":h}`;let p=a.clientWidth,f=p>1e3?Math.min(440,(p-84)/3):Math.min(440,Math.max(240,p-12)),b=tc(u,f,g=>n.read(g));K(s,...b.map(g=>d(g,f)))}function d(u,h){let p=new ce(u.title,{role:"img",tabindex:null});p.draw(u.width,u.height,b=>u.draw(b,ae())),p.overlay.remove();let f=m("div",{},m("h3",{},u.title),p.element);return f.style.width=`${h}px`,f}return{element:a,update:c}}function tc(e,t,n){if(e.kind==="sinusoidal"){let o=xi(e,_n);return[Qt("Vectors: rows are positions, columns dimensions","dimension",o,t,e.length),Qt("PE·PEᵀ: how alike two positions are","position",_o(o),t,e.length),Yt("Wavelength of each pair of dimensions",["pair of dimensions","tokens (log scale)"],[{label:"",points:Oo(e.base,e.width)}],t,!0)]}if(e.kind==="learned"&&e.vectors){let o=n(e.vectors);if(!o)return[];let[r,s]=o.shape,i={rows:r,columns:s,values:Float64Array.from(o.codes,a=>a*o.scale)};return[Qt("Vectors: rows are positions, columns dimensions","dimension",i,t,e.length),Qt("PE·PEᵀ: how alike two positions are","position",_o(i),t,e.length)]}if(e.kind==="rotary")return[Qt("Cosine of the angle: rows are positions, columns pairs of dimensions","pair of dimensions",Ho(e,_n),t,e.length),Yt("Mean of cos(angle) by distance: turned vectors grow apart",["distance in tokens","cosine"],[{label:"",points:yi(e,_n)}],t),Yt("Wavelength of each pair of dimensions",["pair of dimensions","tokens (log scale)"],[{label:"",points:Oo(e.base,e.key_dim)}],t,!0)];if(e.kind==="alibi"&&e.slopes){let o=Array.from({length:_n},(s,i)=>i),r=e.slopes.map((s,i)=>({label:`head ${i+1}`,points:o.map(a=>[a,-s*a])}));return[Yt("Bias by distance, one line per head",["distance in tokens","bias"],r,t)]}if(e.kind==="relative"&&e.curves&&e.offsets){let o=n(e.curves);if(!o)return[];let[r,s,i]=o.shape;return Array.from({length:r},(a,l)=>{let c=Array.from({length:s},(u,h)=>({label:`head ${h+1}`,points:e.offsets.map((p,f)=>[p,o.codes[(l*s+h)*i+f]])})),d=r>1?`Bias by offset (column − row), layer ${l+1}`:"Bias by offset (column − row), one line per head";return Yt(d,["offset in tokens","bias"],c,t)})}return[]}function Qt(e,t,n,o,r){let s=Math.max(1,Math.min(14,(o-40)/Math.max(n.columns,n.rows))),i=Math.max(n.columns*s,Math.min(240,o-40)),[a,l]=[32,22];return{title:e,width:a+i+4,height:l+n.rows*s+18,draw(c,d){let u=n.values.reduce((f,b)=>Math.max(f,Math.abs(b)),1e-12),h=new Uint32Array(n.values.length);n.values.forEach((f,b)=>h[b]=Qe(d.page,f<0?d.minus:d.hue,Math.abs(f)/u)),c.pixels(a,l,i,n.rows*s,{width:n.columns,height:n.rows,data:h}),c.rect(a-.5,l-.5,i+1,n.rows*s+1,{stroke:d.rule});let p={fill:d.muted,size:11};c.text(0,9,"position ↓",p),c.text(a+i,9,`${t} →`,{...p,anchor:"end"});for(let f=0;f<n.rows;f+=16)c.text(a-6,l+(f+.5)*s,String(f),{fill:d.muted,size:11,anchor:"end"});if(r<n.rows){let f=l+r*s;c.path(`M${a} ${f}h${i}`,{stroke:d.ink,width:1,dash:"4 3"}),c.text(a,l+n.rows*s+11,`dashed: the last of ${r} tokens`,{fill:d.muted,size:11})}}}}function Yt(e,[t,n],o,r,s=!1){let[i,a,l,c,d]=[52,58,24,40,256],u=$=>s?Math.log10($):$,h=o.flatMap($=>$.points.map(([M])=>M)),p=o.flatMap($=>$.points.map(([,M])=>u(M))),[f,b,g,w]=[Math.min(...h),Math.max(...h),Math.min(...p,s?1/0:0),Math.max(...p)],x=$=>i+($-f)/(b-f||1)*(r-i-a),L=$=>l+(1-(u($)-g)/(w-g||1))*(d-l-c);return{title:e,width:r,height:d,draw($,M){let T={fill:M.muted,size:11};$.text(4,8,n,T),$.text(r-a,d-8,`${t} →`,{...T,anchor:"end"});for(let v=0;v<=4;v++){let E=g+(w-g)*v/4,S=l+(1-v/4)*(d-l-c);$.path(`M${i} ${S}H${r-a}`,{stroke:M.rule});let O=s?Math.round(10**E).toLocaleString("en"):Number(E.toPrecision(2)).toString().replace("-","−");$.text(i-6,S,O,{...T,anchor:"end"});let H=f+(b-f)*v/4;$.text(x(H),d-26,String(Math.round(H)).replace("-","−"),{...T,anchor:"middle"})}let A=-1/0;o.map(v=>({curve:v,end:L(v.points[v.points.length-1][1])})).sort((v,E)=>v.end-E.end).forEach(({curve:v,end:E},S)=>{let O=v.points.map(([H,P],y)=>`${y?"L":"M"}${x(H).toFixed(1)} ${L(P).toFixed(1)}`).join("");$.path(O,{stroke:M.hue,width:2,opacity:.45+.55*(S+1)/o.length}),!(!v.label||E-A<12)&&(A=E,$.text(r-a+6,E,v.label,T))})}}}var nc=200,vi=5,$i={name:"predictions",title:"Predictions",applies:e=>e.predictions.length>0,mount:({doc:e})=>{let{told:t,untagged:n}=Re(e),o=i=>{let a=i.slice(0,nc).map(l=>rc(e,e.predictions[l]));return m("div",{class:"cards"},...a)},r=e.predictions.map((i,a)=>a).filter(i=>!t.includes(i));return{element:m("section",{class:"predictions","aria-label":"Predictions"},m("h2",{},"What the model predicted"),m("p",{class:"fact"},oc(e)),o(t),n>0?m("details",{class:"transcript"},m("summary",{},$t(n)),o(r)):null),update:()=>{}}}};function oc(e){let{told:t}=Re(e),n=t.map(i=>e.predictions[i]),o=n.reduce((i,a)=>(a.probabilities[0]??0)>(i.probabilities[0]??0)?a:i);if(!o.labels.length)return"Candidates with their probabilities, best first.";let r=X(Y(o.labels[0].trim()||"␣",24));return`${n.length>1?`The surest of ${n.length} predictions`:"The prediction"}: ${r}, probability ${ie(o.probabilities[0])}.`}function rc(e,t){let n=t.labels.map((s,i)=>{let a=m("span",{class:"bar"});return a.style.width=`max(1px, calc(${t.probabilities[i]} * (100% - 56px)))`,[m("dt",{dir:"auto"},Y(s.trim()||"␣",24)),m("dd",{},a,ie(t.probabilities[i]))]}),o=e.predictions.length===1||n.length<=vi+1?n.length:vi,r=n.slice(o);return m("div",{class:"card"},m("h3",{},sc(e,t.position)),m("dl",{},...n.slice(0,o).flat()),r.length?m("details",{},m("summary",{class:"small"},`${r.length} more`),m("dl",{},...r.flat())):null)}function sc(e,t){if(t===null)return e.picture?`The ${e.picture.kind}`:"The whole text";let n=e.sequences.source?.[t];return`Position ${t}: ${X(de(n))}`}var Zt=256,ic=6,ac=.75,lc=.03,cc=["decoder.cross","decoder.self","encoder.self"],Et=e=>(e.sequences.target??[]).findIndex(t=>t.logprob!==void 0),Mi=e=>e.merges===null&&(Et(e)>=0||e.predictions.some(t=>t.labels.length>0));function Io(e,t){let n=Et(e),o=n>=0,r=uc(e,t,n),s=fe(r.columns,!0,!1),i=o?dc(e,n):hc(e);i.forEach(p=>{let f=r.row(o?p.lead-n:p.prediction);if(!f)return;let b=s.map(({members:w})=>w.reduce((x,L)=>x+f[L],0)),g=b.reduce((w,x)=>w+Math.abs(x),0)||1;p.shares=b.map(w=>r.kind==="attribution"?w/g:w),r.kind==="attention"&&r.columns.forEach((w,x)=>p.special+=w.role==="special"?f[x]:0)});let a=o&&r.group==="decoder.self",l=s.map(({members:p})=>Li(p.map(f=>r.columns[f]))),c={inputs:s,areWords:l,outputs:i,isWritten:o,looksBack:a,evidence:r.kind},u=!o&&i.length===1?gc(e,c):fc(e,c),h=o?"":$t(Re(e).untagged);return h&&u.length&&(u[u.length-1].text+=` ${h}`),{...c,steps:u}}function uc(e,t,n){let{attribution:o,sequences:r,reads:s}=e;if(n<0&&o&&o.outputs.length>=e.predictions.length){let h=t(o.methods.integrated_gradients),p=o.source_columns+o.target_columns;return{kind:"attribution",columns:[...r.source??[],...r.target??[]].slice(0,p),row:b=>h?.codes.slice(b*p,(b+1)*p)??null}}let i=e.attention.find(({name:h})=>h===(s?.group??cc.find(p=>mc(e,p))));if(!i)return{kind:null,columns:[],row:()=>null};let a=i.column_count,l=(r[i.columns]??[]).slice(0,a),c=(h,p)=>{let f=h.slice(p*a,(p+1)*a);return f instanceof Uint8Array?Float32Array.from(f,b=>Ie[b]):f},d=t(s?s.weights:i.maps[i.default_head.join(".")]??i.thumbnails),u=h=>{if(!d||d.shape.length!==2)return null;if(s)return h<d.shape[0]?c(d.codes,h):null;let p=n>=0?n+h-1:e.predictions[h].position??0;return c(d.codes,p)};return{kind:"attention",group:i.name,columns:l,row:u}}var mc=(e,t)=>e.attention.some(n=>n.name===t),Li=e=>e.some(({text:t})=>/[\p{L}\p{N}]/u.test(t)),Ti=e=>Math.exp(e??-1/0);function dc(e,t){let n=e.sequences.target,o=fe(n.slice(t),!0,!1);return(o.length<3?fe(n.slice(t),!1,!1):o).slice(0,Zt).map(({label:s,members:i})=>{let a=i.map(p=>t+p),l=a.map(p=>({label:de(n[p]),probability:Ti(n[p].logprob)})),c=l.reduce((p,f)=>p*f.probability,1),d=a.find(p=>n[p].text.trim()!=="")??a[0],u=Li(a.map(p=>n[p])),h=pc(e,d);return{label:s,places:a,lead:d,prediction:-1,probability:c,tokens:l,isWord:u,bars:h,shares:[],special:0}})}function pc(e,t){let n=e.sequences.target[t],o=t-(e.next?.first??0),r=(e.next?.tokens[o]??[]).map((s,i)=>({label:de(e.vocabulary[s]),probability:e.next.probabilities[o][i],isChosen:s===n.id}));return r.some(s=>s.isChosen)?r:[...r,{label:de(n),probability:Ti(n.logprob),isChosen:!0}]}function hc(e){let{told:t}=Re(e);return t.slice(0,Zt).map(n=>{let{position:o,labels:r,probabilities:s}=e.predictions[n],i=r.map(h=>Y(h.trim()||"␣",24)),a=i.map((h,p)=>({label:h,probability:s[p],isChosen:p===0})).slice(0,8),l=i[0]??"–",c=s[0]??0;return{label:l,places:o===null?[]:[o],lead:-1,prediction:n,probability:c,...{tokens:[],isWord:!0,bars:a,shares:[],special:0}}})}function Si(e){let t=0;return e.map((n,o)=>({size:Math.abs(n),input:o})).filter(({size:n})=>n>=lc).sort((n,o)=>o.size-n.size).slice(0,ic).filter(({size:n})=>(t+=n)-n<ac).map(({input:n})=>n)}function fc(e,t){return t.outputs.map((n,o)=>{let r=Si(n.shares);return{output:o,isWritten:!0,inputs:r,text:bc(e,t,n,r)}})}function gc(e,t){let[n]=t.outputs,o=Si(n.shares);e.picture?.kind==="spectrogram"&&o.sort((a,l)=>a-l);let r=o.map((a,l)=>({output:0,isWritten:!1,inputs:o.slice(0,l+1),text:`${Ei(e,t,n,a)}.`.replace(/^it/,"It")})),i=`It decides: ${n.places.length?mt(e,n.places[0]):"the answer"} is ${X(n.label)} (${Z(n.probability)} sure).`;return[...r,{output:0,isWritten:!0,inputs:o,text:i}]}function bc(e,t,n,[o]){let r=`${X(n.label)} (${Z(n.probability)} sure)`,s=o===void 0?"":Ei(e,t,n,o);if(!t.isWritten)return`It decides: ${mt(e,n.places[0])} is ${r}${s?`; ${s}`:""}.`;let i=n.special>(n.shares[o]??0),a=i?`It reads mostly special tokens (${Z(n.special)})${s?`, then ${At(e,t,o)} (${Z(n.shares[o])}),`:""}`:`It${s.slice(2)}`;return s||i?`${a} and writes ${r}.`:`It writes ${r}.`}function Ei(e,t,n,o){let[r,s]=[At(e,t,o),n.shares[o]],i=Z(Math.abs(s));return t.evidence==="attribution"?`${r} speaks ${s>0?"for":"against"} it (${i} of all effects)`:`it ${t.looksBack?"looks back at":"reads"} ${r} (${i})`}function At(e,{inputs:t,looksBack:n},o){let{label:r}=t[o];return!e.picture||n?X(r):e.picture.kind==="image"?r:`the sound at ${r}`}function mt(e,t){let n=e.sequences.source?.[t];if(n?.role!=="special"){let r=e.sequences.source??[];return X(we(r.filter(({word:s})=>s!==null&&s===n?.word))||"?")}let o=e.predictions.filter(r=>r.position!==null);return o.length>1?`gap ${o.findIndex(r=>r.position===t)+1}`:"the gap"}function Ci(e,t){return[...t.isWritten?[wc(e,t),xc(t),...yc(e,t),kc(e),vc(e)]:t.outputs.length===1?[$c(e,t),...Ai(e,t),Tc(e)]:[Mc(e,t),Lc(e,t),...Ai(e,t).slice(0,1)],Sc(e)].filter(o=>o!==null)}var dt=e=>e.reduce((t,n,o)=>n>e[t]?o:t,0),Ri=(e,t)=>t.evidence==="attribution"?"attribution":e.picture&&!t.looksBack?e.picture.kind:e.hypotheses.length?"alignment":"heads";function wc(e,t){let n=t.outputs.flatMap(({shares:c,isWord:d},u)=>c.map((h,p)=>({output:u,input:p,share:h,rank:d&&t.areWords[p]?1+h:h})));if(!n.length)return null;let{output:o,input:r,share:s}=n[dt(n.map(c=>c.rank))];if(s<=0)return null;let i=t.looksBack?"it looks back at":"it reads",a=`The clearest link: to write ${X(t.outputs[o].label)} ${i} ${At(e,t,r)} (${Z(s)} of the attention).`,l={place:t.outputs[o].places[0],column:t.inputs[r].members[0],share:s};return{kind:"link",text:a,numbers:l,output:o,view:Ri(e,t)}}function xc({outputs:e}){let t=e.filter(({isWord:i})=>i),n=t.length?t:e;if(e.length<2)return null;let o=n[dt(n.map(i=>i.probability))],r=`Surest: ${X(o.label)} (${Z(o.probability)}).`,s={place:o.places[0],probability:o.probability};return{kind:"surest",text:r,numbers:s,output:e.indexOf(o)}}function yc(e,{outputs:t}){let n=e.sequences.target,o=t.flatMap(x=>x.places);if(!o.length)return[];let r=o[dt(o.map(x=>-(n[x].logprob??-1/0)))],[s,i]=[n[r],r-(e.next?.first??0)],a=Math.exp(s.logprob??-1/0),l=t.findIndex(x=>x.places.includes(r)),c=`${X(de(s))} (${Z(a)})`,d={output:l,view:e.sampling?"sampling":"search"},[u,h]=[e.next?.tokens[i],e.next?.probabilities[i]];if(!u||!h||u.length<2)return[{kind:"surprise",text:`Least sure token: ${c}.`,numbers:{place:r,probability:a},...d}];let p=u[0]===s.id,[f,b]=[u[+p],h[+p]],g=`${X(de(e.vocabulary[f]))} (${Z(b)})`;return[{kind:"surprise",text:p?`Least sure token: ${c}. It was still the first choice, before ${g}.`:`Most surprising token: ${c}. The model preferred ${g}.`,numbers:{place:r,probability:a,other:f,otherProbability:b},...d}]}function kc(e){let[t,n]=[Et(e),e.sequences.target];if(!e.next)return null;let o=e.next.tokens.map((c,d)=>c[0]===n[t+d]?.id),[r,s]=[o.filter(Boolean).length,o.length],i=s-r,a=e.sampling?"the dice decided":"the search gave them up for a likelier text";return{kind:"favorites",text:i===0?`Every token was the model's first choice${e.sampling?", although it was drawn at random":""}.`:`${i} of ${s} tokens ${i===1?"was":"were"} not the model's first choice: ${i===1&&!e.sampling?"the search gave it up for a likelier text":a}.`,numbers:{favorites:r,total:s},view:e.sampling?"sampling":"search"}}function vc(e){let{search:t}=e;if(!t||!(Number(t.settings.beam_size)>1))return null;let n=i=>t.total[i]??-1/0,o=i=>i===0?[]:[...o(t.parent[i]),t.token[i]],r=i=>X(we(o(i).map(a=>e.vocabulary[a]),60)||"…");for(let i=t.winner_step-1;i>=1;i--){let a=t.lineage[i],l=t.step.flatMap((x,L)=>x===i&&t.status[L]!=="finished"&&n(L)>n(a)?[L]:[]);if(!l.length)continue;let c=l.reduce((x,L)=>n(L)>n(x)?L:x),[d,u]=[Math.exp(n(a)),Math.exp(n(c))],h=i===1?"1 token":`${i} tokens`,[p,f]=[Z(u),Z(d)],b=p===f?`was just ahead of ${r(a)}`:`(${p}) was ahead of ${r(a)}`,g=`The search changed its mind: after ${h} ${r(c)} ${b} (${p===f?"both ":""}${f}).`,w={step:i,rank:l.length+1,probability:d,leaderProbability:u};return{kind:"beam",text:g,numbers:w,view:"search"}}return t.winner_step<2?null:{kind:"beam",text:"The search never changed its mind: the winner was ahead after every token.",numbers:{step:0},view:"search"}}function Pi({bars:e,label:t,probability:n}){let o=`${X(t)} (${Z(n)})`;if(e.length<2)return{text:o,numbers:{probability:n}};let r=e[1].probability,s=n/r,i=s>=9.95?Math.round(s).toLocaleString("en"):s.toFixed(1);return{text:`${o}, ${i} times as probable as ${X(e[1].label)} (${Z(r)})`,numbers:{probability:n,second:r}}}function $c(e,{outputs:[t]}){let{text:n,numbers:o}=Pi(t),[r]=t.places,s=r!==void 0&&e.sequences.source?.[r]?.role==="special";return{kind:"decision",text:`${r===void 0?"It says":s?`In ${mt(e,r)} it puts`:`${mt(e,r)} is`} ${n}.`,numbers:o,output:0,view:"predictions"}}function Mc(e,{outputs:t}){let n=dt(t.map(l=>l.probability)),{label:o,places:r,probability:s,prediction:i}=t[n];return{kind:"surest",text:`Surest: ${mt(e,r[0])} is ${X(o)} (${Z(s)}).`,numbers:{prediction:i,probability:s},output:n,view:"predictions"}}function Lc(e,{outputs:t}){let n=dt(t.map(a=>-a.probability)),{text:o,numbers:r}=Pi(t[n]);return{kind:"doubt",text:`Least sure: ${mt(e,t[n].places[0])} is ${o}.`,numbers:{prediction:t[n].prediction,...r},output:n,view:"predictions"}}function Ai(e,t){let n=Ri(e,t),o=t.outputs.flatMap(({shares:g},w)=>g.map((x,L)=>({output:w,input:L,share:x})));if(!o.length)return[];let r=({output:g,input:w,share:x})=>({output:g,view:n,numbers:{prediction:t.outputs[g].prediction,column:t.inputs[w].members[0],share:Math.abs(x)}}),s=o.map(g=>g.share),i=o[dt(s)],a=At(e,t,i.input),l=X(t.outputs[i.output].label);if(t.evidence==="attribution"){let g=o[dt(s.map(x=>-x))],w=(x,L,$)=>`${At(e,t,x)} speaks most ${$} ${l}: ${Z(Math.abs(L))} of the effect of all words.`;return[...i.share>0?[{kind:"for",text:w(i.input,i.share,"for"),...r(i)}]:[],...g.share<0?[{kind:"against",text:w(g.input,g.share,"against"),...r(g)}]:[]]}let c=t.inputs.length,d=e.picture?e.picture.kind==="image"?"patches":"time steps":"words",h=[...t.outputs[i.output].shares].sort((g,w)=>w-g),p=h.reduce((g,w)=>g+w,0)/2,[f,b]=[0,0];for(;f<c&&b<p;)b+=h[f++];return[{kind:"for",text:`For ${l} it reads ${a} most: ${Z(i.share)} of the attention.`,...r(i)},{kind:"half",text:`${f} of ${c} ${d} ${f===1?"holds":"hold"} half of the attention on them.`,numbers:{needed:f,count:c},output:i.output,view:n}]}function Tc(e){let[{position:t,probabilities:n}]=e.predictions;if(t!==null||n.length<2)return null;let o=n.reduce((i,a)=>a>0?i-a*Math.log(a):i,0),r=Math.exp(o);return{kind:"choices",text:`It is as uncertain as a fair choice among ${r.toFixed(1)} of ${n.length} labels.`,numbers:{choices:r},view:"predictions"}}function Sc(e){let t=Ke(e,e.attention);if(!t||!e.ablation)return null;let{baseline:n,output:o,texts:r}=e.ablation,{group:s,place:i,delta:a}=t,[l,c]=i,[d,u]=[Math.exp(n),Math.exp(n+a)],p={kind:"head",numbers:{group:e.attention.indexOf(s),layer:l,head:c,delta:a,before:d,after:u},view:"break"};if(a>=0)return{...p,text:`No single head is needed: without any one of them ${o} stays at least as probable.`};let f=`layer ${l+1}, head ${c+1} of the ${ve[s.name].toLowerCase()}`,b=Number(Math.exp(-a).toPrecision(2)),g=b<1e9?b.toLocaleString("en"):b.toExponential(0),[w,x]=[Z(d),Z(u)];if(d>=.001?w===x:b<1.05)return{...p,text:`No single head matters much: without any one of them ${o} stays about as probable.`};let L=d>=.001?`the probability of ${o} falls from ${w} to ${x}`:`${o} is ${g} times less probable`,$=r[`${s.name}.${l}.${c}`],M=$!==void 0&&$!==e.output,T=M?Y($.trim(),80)||"nothing":"",A=M?`, and it writes ${X(T)}`:"",k=/[.!?…]$/.test(T)?"":".";return{...p,text:`The head that matters most: ${f}. Without it ${L}${A}${k}`}}var Bo=1240,Ec=160,Ct=25,No=9,pt=26,Di=70;function Fi(e,t,n,o,r,s,i){let[a,l]=[n,o],c=e.map(d=>{let u=Math.max(t,Math.min(r,ge(d,t,i)*1.1+t*.6));a>n&&a+u>n+r&&([a,l]=[n,l+s]);let h={x:a,y:l,width:u,height:t*1.6};return a+=u+t*.4,h});return{boxes:c,bottom:c.length?l+t*1.6:o}}function Ac(e,t,n,o){if(t<700)return 17;let r=s=>e.every(i=>i.length<=40&&i.reduce((a,l)=>a+ge(l.label,s,o)*1.1+s,0)<=n);return(t>=Bo?[36,30,26,22]:[28,24,20]).find(r)??(t>=Bo?22:20)}function Wo(e,t,n,o,r){let s=o>=760,i=s?Math.min(460,o*.34):Math.min(420,o-4),a=s?o-i-48:o-4,l=e.picture!==void 0&&!t.looksBack,c=[l?[]:t.inputs,t.outputs],d=Ac(c,o,a,r.font),u=[],h=[],p=null,f=0,b=t.inputs.length>0;if(b&&u.push([t.looksBack?"It looks back at":"It reads",2,10]),l&&n){let v=e.picture;p=v.kind==="image"?Pn(v,n.shape,Math.min(o>=Bo?520:360,a)):Rn(v,n.shape,a);let{kind:E}=v;p={...p,picture:{...p.picture,x:E==="image"?2:46,y:pt}},h=t.inputs.map((S,O)=>St(v,p,p.picture,O)),f=pt+p.picture.height}else if(b&&!l){let v=Math.max(0,t.inputs.length-Ec),E=t.inputs.slice(v).map(O=>O.label),S=Fi(E,d,2,pt,a,d*2,r.font);h=[...Array(v).fill(null),...S.boxes],f=S.bottom}let g=b?56:0;u.push([t.isWritten?"It writes":"It decides",2,f+g+10]);let w=t.outputs.map(v=>v.label),x=Fi(w,d,2,f+g+pt,a,d*2.6,r.font);f=x.bottom+d*1.1;let L=Math.min(No,Math.max(1,...t.outputs.map(v=>v.bars.length))),$=pt+L*Ct+22,M=[...p?[p.picture]:h,...x.boxes],T=Math.max(...M.map(v=>v?v.x+v.width:0)),A=s?{x:Math.min(a,Math.max(T,420))+44,y:0,width:i,height:$}:{x:2,y:f+20,width:i,height:$},k=Math.max(f,A.y+A.height)+6;return{size:d,inputs:h,outputs:x.boxes,bars:A,headings:u,picture:p,width:o,height:k}}function On(e,t,n,o,r,s,i,a=1){let l=n.outputs[o.output];Cc(e,t,n,o,r,s,i);let c=s.outputs[o.output];for(let d of o.inputs){let u=s.inputs[d];if(!u)continue;let h=l.shares[d],p=s.picture?[u.x+u.width/2,u.y+u.height/2]:[u.x+u.width/2,u.y+u.height],f=kn(p,[c.x+c.width/2,c.y]),b={stroke:h>0?s.picture?i.tint:i.hue:i.minus},g=Math.abs(h)*a;e.path(f,{...b,width:1+13*g,opacity:.15+.55*g})}for(let[d,u,h]of s.headings)e.text(u,h,d,{fill:i.muted,size:13});Pc(e,n,o,s,i),o.isWritten&&Dc(e,n,o,s,i,a)}function Cc(e,t,n,o,r,s,i){let{shares:a,places:l}=n.outputs[o.output];if(s.picture&&r){let c=Float32Array.from(n.inputs,(u,h)=>o.isWritten||o.inputs.includes(h)?Math.max(0,a[h]??0):0),d=Math.max(1e-9,...a);Xt(e,t.picture,r,c,d,s.picture,i),t.picture.kind==="spectrogram"&&Rc(e,n,o,a,s,i);return}n.inputs.forEach(({label:c,members:d},u)=>{let h=s.inputs[u];if(!h||n.looksBack&&d[0]>=l[0])return;let p=o.inputs.includes(u)?a[u]??0:0;if(p!==0){let f=p>0?i.hue:i.minus;e.rect(h.x,h.y,h.width,h.height,{fill:f,opacity:.1+.35*Math.abs(p),radius:6})}Hi(e,c,h,s.size,i,{fill:i.ink,weight:p!==0?600:400})})}function Rc(e,t,n,o,r,s){let i=o.reduce((h,p,f)=>p>o[h]?f:h,0),a=n.isWritten?i:n.inputs[n.inputs.length-1],l=r.inputs[a??0];if(!l||!o.length)return;let c=l.x+l.width/2;e.path(`M${c} ${l.y-4}v${l.height+8}`,{stroke:s.accent,width:2});let d=c<Di+20?"start":c>r.picture.picture.width?"end":"middle",u=d==="start"?Math.max(c,Di):c;e.text(u,l.y-12,t.inputs[a].label,{fill:s.accent,size:12,anchor:d})}function Pc(e,t,n,o,r){t.outputs.forEach(({label:s,probability:i},a)=>{let l=o.outputs[a],c=l.y+l.height,d=a===n.output;if(a>n.output||d&&!n.isWritten){e.path(`M${l.x+4} ${c-4}h${l.width-8}`,{stroke:r.rule,width:2});return}let u=.04+.4*i;e.rect(l.x,l.y,l.width,l.height,{fill:r.hue,opacity:u,radius:6}),d&&e.rect(l.x,l.y,l.width,l.height,{stroke:r.accent,width:2,radius:6}),Hi(e,s,l,o.size,r,{fill:r.ink,weight:d?600:400});let h=Z(i);(d||ge(h,12,r.font)<=l.width+4)&&e.text(l.x+l.width/2,c+10,h,{fill:r.muted,size:12,anchor:"middle"})})}function Dc(e,t,n,o,r,s){let{bars:i,tokens:a}=t.outputs[n.output],{x:l,y:c,width:d}=o.bars,u=Math.min(150,d*.36),h=d-u-74,p=t.isWritten?"What could come next":"What it could be";if(e.text(l,c+10,p,{fill:r.muted,size:13}),i.slice(0,No).forEach((w,x)=>{let L=c+pt+x*Ct+Ct/2,$=w.isChosen?700:400;w.isChosen&&e.rect(l,L-Ct/2+1,d,Ct-2,{fill:r.hue,opacity:.14,radius:4});let M=me(w.label,15,r.font,u-12);e.text(l+u-8,L,M,{fill:r.ink,size:15,weight:$,anchor:"end"});let T=Math.max(1.5,h*w.probability*s);e.rect(l+u,L-7,T,14,{fill:r.hue}),e.text(l+u+T+7,L,Z(w.probability),{fill:r.ink,size:13,weight:$})}),a.length<2)return;let f=a.map(w=>`${w.label} ${Z(w.probability)}`).join(" · "),b=c+pt+Math.min(No,i.length)*Ct+12,g=me(`Its ${a.length} tokens: ${f}`,13,r.font,d);e.text(l,b,g,{fill:r.muted,size:13})}function Hi(e,t,n,o,r,s){let i=me(t,o,r.font,n.width);e.text(n.x+n.width/2,n.y+n.height/2,i,{...s,size:o,anchor:"middle"})}var Fc=700,Hc=1400,_c=1e3,Oc=260,Ii={name:"story",title:"Story",applies:Mi,mount:Ic},Uo=!1,_i=()=>matchMedia("(prefers-reduced-motion: reduce)").matches;function Ic({doc:e,store:t,blobs:n}){let o=Io(e,B=>n.read(B)),r=m("p",{class:"fact caption",role:"status"}),s=new ce("The story. Arrow keys step, Space plays and pauses, Home and End go to the ends."),i=m("span",{class:"small count"}),a=m("button",{type:"button","aria-label":"Back",onclick:()=>H(-1)},"◀"),l=m("button",{type:"button","aria-label":"Next",onclick:()=>H(1)},"▶|"),c=m("button",{type:"button",class:"play",onclick:()=>R()}),d=[.5,1].map(B=>m("button",{type:"button",onclick:()=>I(B)},`${B}×`)),u=m("div",{class:"strip",role:"group","aria-label":"The model"}),h=m("ul",{class:"findings"}),p=m("ol"),f=on(V),b=m("div",{class:"controls"},m("div",{class:"player"},a,c,l),m("div",{class:"choice",role:"group","aria-label":"Speed"},...d),i,he(()=>`story.${S()+1}`,()=>L,(B,re)=>L&&On(B,e,o,o.steps[S()],v(),L,re)),f),g=m("div",{class:"telling"},b,r,m("div",{class:"scroller"},s.element)),w=e.picture?.kind==="image"&&!o.looksBack,x=m("section",{class:w?"story small-picture":"story","aria-label":"Story"},g,m("div",{class:"aside"},u,m("h2",{},"What happened"),h),m("details",{class:"transcript"},m("summary",{},"Transcript"),p),m("p",{class:"small"},`Darker words: the model was surer. ${Nc(o)}`)),L=null,[$,M,T]=[1,!1,!1],A,k=0,v=()=>e.picture?n.read(e.picture.pixels):void 0,E=()=>o.steps.length-1,S=()=>Math.min(t.state.beat??E(),E()),O=B=>t.set({beat:B>=E()?null:Math.max(0,B)}),H=B=>{y(),O(S()+B)};function P(){if(clearTimeout(A),!M||!x.isConnected)return y();A=setTimeout(()=>{O(S()+1),S()>=E()?y():P()},Fc/$)}function y(){clearTimeout(A),M=T=!1,G()}function C(){M=!0,S()>=E()&&O(0),G(),P()}let R=()=>M?y():C(),I=B=>{$=B,G(),M&&P()};function G(){c.textContent=M?"Pause":"Play",d.forEach((B,re)=>B.setAttribute("aria-pressed",String([.5,1][re]===$))),i.textContent=`Step ${S()+1} of ${o.steps.length}`,a.disabled=S()<=0,l.disabled=S()>=E()}let D=B=>{if(!x.isConnected)return document.removeEventListener("keydown",D);let re=B.target;if(!(re===document.body||x.contains(re))||B.ctrlKey||B.metaKey||B.altKey||B.key===" "&&re.closest("button, summary, a"))return;let pe={ArrowRight:()=>H(1),ArrowLeft:()=>H(-1),Home:()=>H(-1/0),End:()=>H(1/0)," ":R};Object.hasOwn(pe,B.key)&&(B.preventDefault(),pe[B.key]())};document.addEventListener("keydown",D);function N(B){if(B.size===0){o=Io(e,pe=>n.read(pe));let ue=Ci(e,o);K(h,...ue.map(_)),K(p,...o.steps.map(pe=>m("li",{},pe.text))),L=Wo(e,o,v(),Math.max(260,g.clientWidth-4),ae())}else if(!B.has("beat"))return;G(),f.hidden=o.steps.length<2;let re=o.steps[S()];r.textContent=re.text,K(u,...W()),cancelAnimationFrame(k),B.has("beat")&&!_i()?z(performance.now()):q(1),Uo||(Uo=T=t.state.beat===null&&!_i()&&o.steps.length>1,Uo=!0),T&&o.outputs[0].shares.length>0&&(T=!1,C())}function z(B){let re=Math.min(1,(performance.now()-B)/Oc);q(1-(1-re)**3),re<1&&(k=requestAnimationFrame(()=>z(B)))}function q(B){let re=L,ue=o.steps[S()];s.draw(re.width,re.height,(pe,De)=>On(pe,e,o,ue,v(),re,De,B))}function V(){let[B,re]=[o,v()],ue=Wo(e,B,re,_c,ae());return{name:"story",caption:zn(),width:ue.bars.x+ue.bars.width,height:ue.height,count:B.steps.length,delay:Hc,draw:(pe,De,ht)=>On(De,e,B,B.steps[pe],re,ue,ht),tell:pe=>B.steps[pe].text}}function _(B){let re=o.steps.findIndex(({output:pe,isWritten:De})=>pe===B.output&&De),ue=[B.output!==void 0&&o.outputs.length>1?m("button",{type:"button",onclick:()=>(y(),O(re))},"Show"):null,B.view&&te(B.view)?m("button",{type:"button",onclick:()=>U(B.view)},"Details"):null];return m("li",{"data-kind":B.kind},m("span",{dir:"auto"},B.text),...ue)}function U(B){let re=B==="break"?Ke(e,e.attention):null,ue=re?[[re.group.name,...re.place].join(".")]:t.state.headsOff;t.set({view:B,hover:null,locked:null,headsOff:ue})}function W(){let{width:B,layers:re,vocabulary:ue}=e.model,pe=o.outputs[o.steps[S()].output],De=Et(e),ht=Object.entries(re).map(([ne,ee])=>{let le=e.attention.find(({name:Oe})=>Oe===`${ne}.cross`)??e.attention.find(({name:Oe})=>Oe===`${ne}.self`),ye=ne==="encoder"?e.sequences.source?.length??0:pe.places[0]??De,$e=`${ee} ${ee===1?"layer":"layers"}`;return Oi(ne,`${ye} × ${B}`,$e,le?()=>oe(le):null)}),F=e.predictions[0],j=F?.position!=null&&e.sequences.source?.[F.position]?.role==="special",Q=o.isWritten||j?ue.target??ue.source:F?.labels.length,J=["predictions","sampling","search"].find(te),se=o.isWritten||j?"tokens":"labels";return ht.push(Oi("softmax",(Q??0).toLocaleString("en"),se,J?()=>U(J):null)),ht.flatMap((ne,ee)=>ee>0?[m("span",{"aria-hidden":"true"},"→"),ne]:[ne])}function oe(B){let re=e.picture&&B.columns==="source"?e.picture.kind:"heads",[ue,pe]=B.default_head;t.set({view:re,group:B.name,layer:ue,head:pe,query:null,hover:null,locked:null})}let te=B=>Bc[B]?.(e)??e.attention.length>0;return{element:x,update:N}}var Bc={search:e=>e.search!==null&&e.search.step.length>1,sampling:e=>(e.sampling?.steps.length??0)>0,predictions:e=>e.predictions.length>0,ablation:e=>e.ablation!==null,attribution:e=>e.attribution!==null};function Nc({evidence:e,outputs:t}){let n=t.length===Zt?` The story has the first ${Zt} words.`:"";return e==="attribution"?`Ribbons show how much a word raises (blue) or lowers (purple) the result, by integrated gradients.${n}`:`Ribbons show attention: where the model looked, not why it decided.${n}`}function Oi(e,t,n,o){let r=[m("b",{},e),m("span",{},t),m("span",{class:"small"},n)];return o?m("button",{type:"button",onclick:o},...r):m("div",{},...r)}var Wc=[Us,Ii,si,ii,li,Rs,ys,Qr,$i,ci,cs,ps,di,ki,wi],Go=null;function Bi(e,t){Go?.abort(),Go=new AbortController;let{signal:n}=Go;In(e);let o=Wc.filter(M=>M.applies(e)),r=o.map(M=>M.name),s=Zr(e,r[0]??""),i=new bn(ro(location.hash,s,e,r)),a=new ke(M=>e.blobs[M]?Be(e.blobs[M]):Promise.reject(new Error(`No blob ${M}.`)),()=>i.notify()),l={doc:e,store:i,blobs:a,live:new vt(e)},c=e.session&&l.live.available?Ko(e,l.live,M=>Uc(M,t)):null,d=os(o,M=>i.set({view:M,hover:null,locked:null})),u=m("div",{id:"panel",role:"tabpanel","aria-labelledby":`tab-${i.state.view}`}),h=tr(i,n),p=Jr(()=>oo(i.state,s)),f=m("div",{class:"tools"},h,...p.elements);K(t,zc(e,f,c,l.live),m("main",{},...d.elements,u,qc(e)));let b=null,g="",w=M=>{let{view:T}=i.state;T!==g&&(g=T,b=o.find(A=>A.name===T)?.mount(l)??null,K(u,b?.element??m("p",{},"This document has nothing to show.")),u.setAttribute("aria-labelledby",`tab-${T}`),d.mark(T),p.clear(),M=new Set),b?.update(M)};i.subscribe(w),w(new Set),Gc(i,s,e,r,n);let x=()=>i.notify(),L=window.innerWidth,$=()=>{window.innerWidth!==L&&(L=window.innerWidth,x())};window.addEventListener("resize",$,{signal:n}),matchMedia("(prefers-color-scheme: dark)").addEventListener("change",x,{signal:n})}function Uc(e,t){e.against&&!location.hash.startsWith("#compare")&&history.pushState(null,"","#compare"),document.title=`${[e.text,e.output].flatMap(n=>n?[Y(n,60)]:[]).join(" → ")} · Regard`,Bi(e,t),t.querySelector(".box textarea")?.focus()}function Gc(e,t,n,o,r){let s,i=l=>{if(r.aborted)return;let c=oo(e.state,t);if(c!==(location.hash||`#${t.view}`))try{history[l?"pushState":"replaceState"](null,"",c)}catch{}};e.subscribe(l=>{clearTimeout(s),l.has("view")?i(!0):s=setTimeout(()=>i(!1),100)});let a=()=>{clearTimeout(s),e.set({...ro(location.hash,t,n,o),hover:null})};window.addEventListener("hashchange",a,{signal:r})}function zc(e,t,n,o){let{model:r}=e,s=Y(et(e),160),i=e.session?.blame&&o.available&&s===e.output,[a,l]=i?Vo(s,p=>o.blame(p)):[m("bdi",{},s),null],c=Object.entries(r.layers).map(([p,f])=>`${f} ${p} ${f===1?"layer":"layers"}`),d=r.parameters>0?`${r.parameters.toLocaleString("en")} parameters`:"",u=[r.name,d,...c].filter(Boolean),h=Wr(e);return m("header",{},m("div",{},n,e.output?m("p",{class:"input",dir:"auto",hidden:n!==null},Y(e.text,240)):null,m("h1",{},a,h?m("span",{class:"sure",title:h.title},` ${h.text}`):null),l,m("p",{class:"small"},Y(u.join(" · "))),...e.notes.map(p=>m("p",{class:"note"},Y(p)))),t)}function qc(e){let t=Ur(e);return m("footer",{class:"small"},m("p",{},`Made with Regard ${e.model.regard}`,t?": ":".",t?m("code",{dir:"auto"},Y(t)):null))}document.head.append(m("style",{},ts+es));var jc=document.getElementById("document"),zo=document.getElementById("app")??document.body.appendChild(m("div",{id:"app"}));try{let e=JSON.parse(jc?.textContent??"");Xo(e)?Dr(e,zo):Bi(e,zo)}catch(e){throw K(zo,m("p",{role:"alert"},`This page cannot be shown: ${e instanceof Error?e.message:e}`)),e}})();
